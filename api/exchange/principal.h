/* Whoever a request is identified as: a key with its account and its grants. Pure; any thread. */
#ifndef API_EXCHANGE_PRINCIPAL_H
#define API_EXCHANGE_PRINCIPAL_H

#include "base/arena.h"
#include "storage/buckets/account.h"

/* borrowed from the exchange's arena: a copy, so that a revoked key finishes its request */
struct principal {
	struct span key_id;
	struct span namespace;
	bool is_root;
	const struct grant *grants; /* none: acts for its whole account */
	size_t grant_count;
};

/* May this principal do `permission` on bucket (and key or prefix)? `owner` is the bucket's account
 * (empty when it does not exist). Root: all. No grants: when the account owns the bucket or nobody
 * does (so that its caller learns that it does not exist). Grants: exactly what they name. NULL
 * (anonymous): nothing. */
bool principal_allows(const struct principal *principal, struct span bucket, struct span owner,
	struct span key, unsigned permission);
/* Root, and keys with the grant "metrics", may read /-/metrics. */
bool principal_may_read_metrics(const struct principal *principal);
/* The grant "metrics" names no bucket: reading /-/metrics is all that it gives. */
bool principal_is_metrics_grant(const struct grant *grant);

#endif
