/* GET /api/buckets/{namespace}/{bucket}/tree[/{prefix}]: the files of a bucket, page by page. */
#ifndef API_HUB_LIST_TREE_H
#define API_HUB_LIST_TREE_H

#include "api/exchange/exchange.h"
#include "storage/files/tree.h"

/* The bucket, the prefix as the path has it, and what of it the caller may list: all below the
 * prefix, perhaps without the file of the same name. 0; no_credentials, denied, no_bucket. */
int list_tree_place(struct exchange *exchange, struct tree_params *out, struct error *err);

enum next list_tree_begin(struct exchange *exchange);
enum next list_tree_resume(struct exchange *exchange);

#endif
