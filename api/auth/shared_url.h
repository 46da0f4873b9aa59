/* URLs that need no key: with the setting shared_urls, the URL of an object of a step or a fold has
 * an expiry and a signature in its query, and is the same for all that ask within an hour.
 *
 *   /v1/runs/BUCKET/RUN/steps/5/objects/delta/a.safetensors?v=DIGEST&expires=SECONDS&sign=HEX
 *
 * The signature is the first half of an HMAC-SHA256 with a key of its own. It covers GET (which
 * HEAD is a form of), the bucket with its id, the run, the path below the run, `v` and `expires`,
 * so it opens nothing else, and nothing in a later bucket of the same name. The server stores no
 * signatures. docs/protocol/steps.md, "URLs of objects". Any thread. */
#ifndef API_AUTH_SHARED_URL_H
#define API_AUTH_SHARED_URL_H

#include "api/exchange/exchange.h"
#include "base/digest/digest.h"

enum {
	SHARED_URL_HOUR_S = 3600,
	SHARED_URL_DIGEST_CHARACTERS = 32,
	SHARED_URL_SIGN_BYTES = 16,
	SHARED_URL_SIGN_TEXT_BYTES = 2 * SHARED_URL_SIGN_BYTES + 1
};

struct shared_url {
	struct bucket_ref bucket; /* with its id */
	struct span run;
	struct span
		object; /* below the run, percent-encoded: "steps/5/objects/delta/a.safetensors" */
	struct span digest; /* the value of `v`: SHARED_URL_DIGEST_CHARACTERS hex digits */
	int64_t expires_s;
};

/* The expiry of URLs that are told now: a full hour, more than one and at most two hours ahead. */
int64_t shared_url_expiry_s(int64_t now_ms);
/* What signs all URLs of one server; wipe it. */
struct shared_url_key {
	uint8_t bytes[SHA256_BYTES];
};
void shared_url_key_init(struct shared_url_key *key, const struct api_context *context);
/* Writes the value of `sign`. The text is a secret: whoever has it may read the object. */
void shared_url_sign(const struct shared_url_key *key, const struct shared_url *url,
	char out[SHARED_URL_SIGN_TEXT_BYTES]);

/* Whether the query has a signature, valid or not. */
bool shared_url_is_present(struct exchange *exchange);
/* For the routes StepObject and FoldObject: whether the request's signature opens this very path.
 * Sets exchange->bucket_id and shared_until_s then. Fails with denied when it does not, when it has
 * expired, or when the setting is off. */
int shared_url_judge(struct exchange *exchange, struct error *err);

#endif
