/* Tokens for the Xet face. The Hub face issues them for one bucket, for reading or writing, and
 * they expire. A token names the key that it was issued to. Each request looks that key up again,
 * so a revoked key makes its tokens invalid. The format is in docs/FORMAT.md, "Xet tokens". */
#ifndef API_AUTH_XET_TOKEN_H
#define API_AUTH_XET_TOKEN_H

#include "api/exchange/exchange.h"

enum { XET_TOKEN_SECONDS = 3600 };

struct xet_token {
	int64_t bucket_id;
	struct span bucket;  /* the name in the catalog, looked up at each request */
	struct span key_id;  /* empty: anonymous, for public buckets */
	struct span account; /* the key's namespace; empty: anonymous */
	bool is_write;
	int64_t expires_s;
};

/* "xet_...", in the arena. Uses bucket_id, key_id, is_write and expires_s of `token`. */
const char *xet_token_print(struct exchange *exchange, const struct xet_token *token);
/* Whether the text begins like a Xet token. */
bool xet_token_has_prefix(struct span text);
/* Sets exchange->transfer, and exchange->principal to the token's key. Fails with unknown_key_id
 * when this server did not issue the token, when it has expired or when its key was revoked, and
 * with no_bucket. */
int xet_token_identify(struct exchange *exchange, struct span text, struct error *err);

/* For tests. False when the text is not a token that `key` has sealed. Spans lie in the arena. */
bool xet_token_parse(
	struct arena *arena, const uint8_t key[32], struct span text, struct xet_token *out);

#endif
