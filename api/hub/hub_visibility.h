/* Public and private, as the Hub has them: a bucket is public when everyone may list it and read
 * all of it, whichever face said so. */
#ifndef API_HUB_VISIBILITY_H
#define API_HUB_VISIBILITY_H

#include "api/exchange/exchange.h"
#include "base/format/json_node.h"
#include "storage/buckets/bucket.h"

struct hub_visibility {
	bool given;
	bool is_public;
};
/* Members "private" (true, false) and "visibility" ("private", "public") of a request; null counts
 * as absent, other members are ignored. invalid when they are something else or contradict each
 * other. */
int hub_visibility_read(
	const struct json_node *request, struct hub_visibility *out, struct error *err);
/* The edit that makes it so; `grants` must live as long as it. */
struct bucket_edit hub_visibility_edit(bool is_public, struct bucket_grant grants[1]);
/* Whether the bucket's settings allow the edit to do what it says: denied (its public access
 * block), invalid_request (it takes no ACLs; its policy would keep it public); no_bucket. */
int hub_visibility_check(
	struct exchange *exchange, struct bucket_ref bucket, bool is_public, struct error *err);
int hub_visibility_find(
	struct exchange *exchange, int64_t bucket, bool *out_public, struct error *err);

#endif
