/* GET /api/buckets/{namespace}/{bucket}/tree[/{prefix}]: lists the files of a bucket, page by
 * page. */
#ifndef API_HUB_LIST_TREE_H
#define API_HUB_LIST_TREE_H

#include "api/exchange/exchange.h"
#include "storage/files/tree.h"

/* Sets the bucket, the prefix from the path, and skips_prefix_file when the caller may list only
 * what is below the prefix. Fails with no_credentials, denied or no_bucket when the caller may list
 * neither. */
int list_tree_place(struct exchange *exchange, struct tree_params *out, struct error *err);

enum next list_tree_begin(struct exchange *exchange);
enum next list_tree_resume(struct exchange *exchange);

#endif
