/* Tokens of the content-addressed half: the Hub half gives them out for one bucket, to read or to
 * write, and they die by themselves. They name the key that they were given to, which is looked up
 * anew at each request: who was revoked is out. docs/FORMAT.md, "Xet tokens". */
#ifndef API_AUTH_XET_TOKEN_H
#define API_AUTH_XET_TOKEN_H

#include "api/exchange/exchange.h"

enum { XET_TOKEN_SECONDS = 3600 };

struct xet_token {
	int64_t bucket_id;
	struct span bucket;  /* its name in the catalog; found again at each request */
	struct span key_id;  /* empty: anonymous, for public buckets */
	struct span account; /* the key's namespace; empty: anonymous */
	bool is_write;
	int64_t expires_s;
};

/* "xet_...", in the arena; of `token` bucket_id, key_id, is_write and expires_s count. */
const char *xet_token_print(struct exchange *exchange, const struct xet_token *token);
bool xet_token_is_meant(struct span text);
/* Who the token speaks for: sets exchange->transfer and principal. unknown_key_id when it is none
 * of ours, is over, or its key is gone; no_bucket. */
int xet_token_identify(struct exchange *exchange, struct span text, struct error *err);

/* The inside, for tests: false when the text is not a token that `key` has sealed. Spans lie in the
 * arena. */
bool xet_token_parse(
	struct arena *arena, const uint8_t key[32], struct span text, struct xet_token *out);

#endif
