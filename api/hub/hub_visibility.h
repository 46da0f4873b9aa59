/* The visibility of a bucket on the Hub's face. A bucket is public when everyone may list it and
 * read all its files, whichever face made it so. */
#ifndef API_HUB_VISIBILITY_H
#define API_HUB_VISIBILITY_H

#include "api/exchange/exchange.h"
#include "base/format/json_node.h"
#include "storage/buckets/bucket.h"

struct hub_visibility {
	bool given; /* the request states it */
	bool is_public;
};
/* Reads the members "private" (true, false) and "visibility" ("private", "public") of a request.
 * null counts as absent; other members are ignored. invalid when they have other values or
 * contradict each other. */
int hub_visibility_read(
	const struct json_node *request, struct hub_visibility *out, struct error *err);
/* Makes the edit that sets the visibility. `grants` must live as long as the edit. */
struct bucket_edit hub_visibility_edit(bool is_public, struct bucket_grant grants[1]);
/* Whether the edit would have its effect with the bucket's settings: denied (its public access
 * block), invalid_request (it takes no ACLs, or its policy would keep it public); no_bucket. */
int hub_visibility_check(
	struct exchange *exchange, struct bucket_ref bucket, bool is_public, struct error *err);
int hub_visibility_find(
	struct exchange *exchange, int64_t bucket, bool *out_public, struct error *err);

#endif
