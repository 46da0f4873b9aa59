/* A bucket as the Hub's face shows it, and the rules for the name of a new one. */
#ifndef API_HUB_BUCKET_H
#define API_HUB_BUCKET_H

#include "api/exchange/exchange.h"
#include "base/format/json_node.h"
#include "storage/buckets/bucket.h"

struct hub_bucket {
	struct bucket bucket;
	/* zero, except updated_ms, for callers that may not list the whole bucket */
	struct bucket_totals totals;
	bool is_public;
};
/* Whether the caller's own key allows to list the whole bucket. Does not ask what the bucket grants
 * to others. */
bool hub_bucket_is_listed(const struct exchange *exchange, const struct bucket *bucket);
/* Describes a bucket that the caller may know of, as far as the caller may see it. */
int hub_bucket_describe(struct exchange *exchange, const struct bucket *bucket,
	struct hub_bucket *out, struct error *err);
void hub_bucket_print(
	struct exchange *exchange, const struct hub_bucket *bucket, struct json_writer *json);
/* The same for lists of repositories: its bytes, and their part of `all_bytes` (0: not shown). */
void hub_bucket_print_storage(struct exchange *exchange, const struct hub_bucket *bucket,
	int64_t all_bytes, struct json_writer *json);
/* "namespace/name" for a bucket's name in the catalog; in the arena. */
const char *hub_bucket_id(struct exchange *exchange, struct span bucket);

/* A name that the caller wants for a bucket. It must be in the caller's own namespace ("me"); root
 * may use any. The account of the namespace becomes the owner. */
struct hub_claim {
	struct span bucket; /* its name in the catalog */
	struct span account;
};
/* denied (the namespace of another account, or the key's grants do not name this bucket with
 * `admin`), bad_name. The caller must be signed in. */
int hub_bucket_claim(struct exchange *exchange, struct span namespace, struct span name,
	struct hub_claim *out, struct error *err);

#endif
