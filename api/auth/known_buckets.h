/* The buckets that listings show to a caller: all of them to root, those of its account to a key
 * without grants, and to a key with grants the ones that they name. What a bucket allows to
 * everyone puts it on nobody's list. */
#ifndef API_AUTH_KNOWN_BUCKETS_H
#define API_AUTH_KNOWN_BUCKETS_H

#include "api/exchange/exchange.h"

struct known_buckets_params {
	struct span prefix; /* of the names */
	struct span after;  /* exclusive */
	size_t limit;       /* above 0 */
};
/* Buckets in byte order of their names, in the exchange's arena. The caller must be known. For the
 * root key and keys without grants it is one query of the catalog; for a key with grants the
 * buckets are looked up one by one. */
int known_buckets_list(struct exchange *exchange, const struct known_buckets_params *params,
	struct bucket **out, size_t *out_count, struct error *err);
/* The permissions (storage/buckets/account.h) that the caller has on anything in a bucket of that
 * list. */
unsigned known_bucket_permissions(const struct exchange *exchange, const struct bucket *bucket);

#endif
