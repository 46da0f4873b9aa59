/* The identified caller of a request: a key with its account and its grants. Pure; any thread. */
#ifndef API_EXCHANGE_PRINCIPAL_H
#define API_EXCHANGE_PRINCIPAL_H

#include "base/arena.h"
#include "storage/buckets/account.h"

/* A copy in the exchange's arena, so that a request goes on when its key is revoked. */
struct principal {
	struct span key_id;
	struct span namespace;
	bool is_root;
	const struct grant *grants; /* none: the key may do all that its account may */
	size_t grant_count;
};

/* Whether the principal has `permission` on the bucket and the key or prefix. `owner` is the
 * account of the bucket, empty when the bucket does not exist. Root may do everything. A principal
 * without grants may do everything in buckets of its account and in buckets that do not exist, so
 * that the caller learns that they do not. Grants give exactly what they name. NULL (anonymous) may
 * do nothing. */
bool principal_allows(const struct principal *principal, struct span bucket, struct span owner,
	struct span key, unsigned permission);
/* Root, and keys with the grant "metrics", may read /-/metrics. */
bool principal_may_read_metrics(const struct principal *principal);
/* The grant "metrics" names no bucket and only allows reading /-/metrics. */
bool principal_is_metrics_grant(const struct grant *grant);

#endif
