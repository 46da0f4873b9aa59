/* GET /buckets/{namespace}/{bucket} and /buckets/{namespace}/{bucket}/tree[/{prefix}]: the
 * addresses that `hf` prints, for whoever opens one in a browser. Browsers carry no token, so it is
 * public buckets that they see; of others a page says how to get at them. */
#ifndef API_HUB_BUCKET_PAGE_H
#define API_HUB_BUCKET_PAGE_H

#include "api/exchange/exchange.h"

/* 200 with HTML: what the bucket is, and the files and directories of one level, with links. */
enum next bucket_page_begin(struct exchange *exchange);

extern const struct face face_hub_page; /* errors as HTML, their headers as the Hub's */

#endif
