/* May the caller do this? Judged once for the matched route, before its handler runs, and again by
 * handlers that touch more than the route names: copies (their source), lists of keys. */
#ifndef API_AUTH_AUTHORISE_H
#define API_AUTH_AUTHORISE_H

#include "api/exchange/exchange.h"

/* The access rule of exchange->route; sets exchange->bucket_id and judged_version. 0;
 * no_credentials, denied; no_bucket for those who might if it existed. */
int authorise(struct exchange *exchange, struct error *err);
/* Permissions (storage/buckets/account.h, and bucket_grant.h: DELETE of a key, VERSIONS besides
 * when an older version is named) on one key of a bucket, which need not be the route's. The owner
 * and keys with grants are judged by these alone; others and anonymous callers by what the bucket
 * grants: one indexed read. 0; no_credentials, denied; no_bucket. A bucket that does not exist is
 * judged as if it were the caller's, so that he learns that it does not exist. The bucket gets the
 * id of the one that was judged, but for the root key, which may use whatever bucket has the
 * name. */
int authorise_key(struct exchange *exchange, struct bucket_ref *bucket, struct span key,
	unsigned permission, struct error *err);
/* The same without what the bucket grants: for what is a matter of its owner and of keys that were
 * given for it. */
int authorise_owned_key(struct exchange *exchange, struct bucket_ref *bucket, struct span key,
	unsigned permission, struct error *err);

/* As authorise_key, for those who pass over what is refused: 1, 0 when the caller may not, -1 when
 * it cannot be told. */
int authorise_permits(struct exchange *exchange, struct bucket_ref *bucket, struct span key,
	unsigned permission, struct error *err);

/* Whether the caller may not; else it could not be told. */
bool authorise_is_refusal(enum error_kind kind);

/* May the caller know of this bucket: anything at all in it? False too when nobody has it. Replies
 * that list buckets ask this of each. */
bool authorise_knows(struct exchange *exchange, struct bucket_ref bucket);

#endif
