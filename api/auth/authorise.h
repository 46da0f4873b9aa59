/* Decides whether the caller may do what the request asks. The router asks once for the matched
 * route, before the handler runs. Handlers ask again for objects that the route does not name: the
 * source of a copy, the keys of a list. */
#ifndef API_AUTH_AUTHORISE_H
#define API_AUTH_AUTHORISE_H

#include "api/exchange/exchange.h"

/* Judges the access rule of exchange->route, and sets exchange->bucket_id and judged_version. Fails
 * with no_credentials or denied, and with no_bucket for a caller that would be allowed if the
 * bucket existed. */
int authorise(struct exchange *exchange, struct error *err);
/* Judges permissions on one key of a bucket, which may differ from the route's. `permission` has
 * bits of storage/buckets/account.h and bucket_grant.h: DELETE to delete a key, and VERSIONS in
 * addition when the request names an older version. The account and the grants of the caller's key
 * decide for the owner and for keys with grants. The grants of the bucket decide for other accounts
 * and anonymous callers, with one indexed read. Fails with no_credentials, denied or no_bucket. A
 * bucket that does not exist is judged as if the caller owned it, so that the caller learns that it
 * does not exist. *bucket gets the id of the judged bucket, except for the root key, which may use
 * any bucket with the name. */
int authorise_key(struct exchange *exchange, struct bucket_ref *bucket, struct span key,
	unsigned permission, struct error *err);
/* The same without the grants of the bucket, for things that only the owner and keys with grants
 * may do. */
int authorise_owned_key(struct exchange *exchange, struct bucket_ref *bucket, struct span key,
	unsigned permission, struct error *err);

/* As authorise_key, for callers that skip refused keys: 1 when the caller may, 0 when it may not,
 * -1 when the judgement failed. */
int authorise_permits(struct exchange *exchange, struct bucket_ref *bucket, struct span key,
	unsigned permission, struct error *err);

/* Whether an error of this kind is a refusal. Other kinds mean that the judgement failed. */
bool authorise_is_refusal(enum error_kind kind);

/* Whether the caller may know of the bucket, because it has a permission on anything in it. False
 * when the bucket does not exist or the judgement failed. Replies that list buckets ask this for
 * each bucket. */
bool authorise_knows(struct exchange *exchange, struct bucket_ref bucket);

#endif
