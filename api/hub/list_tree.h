/* GET /api/buckets/{namespace}/{bucket}/tree[/{prefix}]: the files of a bucket, page by page. */
#ifndef API_HUB_LIST_TREE_H
#define API_HUB_LIST_TREE_H

#include "api/exchange.h"

enum next list_tree_begin(struct exchange *exchange);
enum next list_tree_resume(struct exchange *exchange);

#endif
