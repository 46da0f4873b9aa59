/* GET /api/buckets/{namespace}/{bucket}/xet-read-token and xet-write-token: what opens the
 * content-addressed half for one bucket. Older clients read the JSON, some the headers alone: both
 * say the same. */
#ifndef API_HUB_TOKEN_H
#define API_HUB_TOKEN_H

#include "api/exchange/exchange.h"

/* For who may know of the bucket; what he may read of it is judged file by file. */
enum next hub_token_read_begin(struct exchange *exchange);
/* For who may write anything in it; 401 for anonymous callers, 403 for others. */
enum next hub_token_write_begin(struct exchange *exchange);

#endif
