/* GET /buckets/{namespace}/{bucket} and /buckets/{namespace}/{bucket}/tree[/{prefix}]: the
 * addresses that `hf` prints, for people who open one in a browser. Browsers send no token, so they
 * see public buckets only; for others the page says how to reach them. */
#ifndef API_HUB_BUCKET_PAGE_H
#define API_HUB_BUCKET_PAGE_H

#include "api/exchange/exchange.h"

/* 200 with HTML: facts about the bucket, and the files and directories of one level, with links. */
enum next bucket_page_begin(struct exchange *exchange);

extern const struct face face_hub_page; /* errors as HTML, with the headers of the Hub's face */

#endif
