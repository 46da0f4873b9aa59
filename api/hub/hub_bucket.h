/* A bucket as the Hub shows it, and who may make one under which name. */
#ifndef API_HUB_BUCKET_H
#define API_HUB_BUCKET_H

#include "api/exchange/exchange.h"
#include "base/format/json_node.h"
#include "storage/buckets/bucket.h"

struct hub_bucket {
	struct bucket bucket;
	struct bucket_totals totals; /* zero for who may not list the whole bucket */
	bool is_public;
};
/* Whether the caller's own key lets him list all of it: what the bucket grants to others is not
 * asked. */
bool hub_bucket_is_listed(const struct exchange *exchange, const struct bucket *bucket);
/* What the caller may read of a bucket that he may know of. */
int hub_bucket_describe(struct exchange *exchange, const struct bucket *bucket,
	struct hub_bucket *out, struct error *err);
void hub_bucket_print(
	struct exchange *exchange, const struct hub_bucket *bucket, struct json_writer *json);
/* The same for lists of repositories: its bytes, and which part they are of `all_bytes` (0: nobody
 * asks). */
void hub_bucket_print_storage(struct exchange *exchange, const struct hub_bucket *bucket,
	int64_t all_bytes, struct json_writer *json);
/* "namespace/name" of a bucket of the catalog. Arena. */
const char *hub_bucket_id(struct exchange *exchange, struct span bucket);

/* A name that the caller wants for a bucket: in his own namespace ("me"), root in any. The owner is
 * whose namespace it is. */
struct hub_claim {
	struct span bucket; /* the catalog's name */
	struct span account;
};
/* denied (another's namespace, or the key's grants do not name this bucket with `admin`), bad_name.
 * The caller is signed in. */
int hub_bucket_claim(struct exchange *exchange, struct span namespace, struct span name,
	struct hub_claim *out, struct error *err);

#endif
