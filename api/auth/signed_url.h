/* URLs with a SigV4 signature in their query, for S3 requests that somebody without the secret
 * makes: a browser of the console. presigned_v4.h judges them. Any thread. */
#ifndef API_AUTH_SIGNED_URL_H
#define API_AUTH_SIGNED_URL_H

#include "api/exchange/exchange.h"
#include "base/digest/digest.h"

enum { SIGNED_URL_PARAMETERS_MAX = 32, SIGNED_URL_MAX_BYTES = 64 * 1024 };

/* What all URLs of one reply share; texts in the arena. */
struct url_signer {
	uint8_t key[SHA256_BYTES]; /* a signing key (signing_key.h); wipe it */
	const char *base;          /* scheme and host, as a browser writes them */
	const char *host;          /* the part behind the scheme: what the header Host will have */
	const char *scope;         /* KEY/yyyymmdd/region/s3/aws4_request */
	char date[CLOCK_TEXT_BYTES]; /* of the form 20130524T000000Z */
	int64_t expires_s;
};
/* Signs as the caller of the exchange, for the base URL of the request. Fails with denied when the
 * caller has no key: over DIR/control.sock. */
int url_signer_init(
	struct url_signer *signer, struct exchange *exchange, int64_t expires_s, struct error *err);

struct url_request {
	enum method method;
	struct span bucket;
	struct span key; /* empty: a request for the bucket */
	struct url_parameter {
		struct span name;
		struct span value;
	} parameters[SIGNED_URL_PARAMETERS_MAX];
	size_t parameter_count;
};
/* Appends the URL. Fails with invalid when a parameter is one of the signature's own, and with
 * too_large. */
int url_signer_print(const struct url_signer *signer, const struct url_request *request,
	struct buffer *out, struct error *err);

#endif
