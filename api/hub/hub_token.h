/* GET /api/buckets/{namespace}/{bucket}/xet-read-token and xet-write-token: gives a token for the
 * Xet face and one bucket. Some clients read the JSON, others only the headers: both have the
 * same. */
#ifndef API_HUB_TOKEN_H
#define API_HUB_TOKEN_H

#include "api/exchange/exchange.h"

/* For callers that may know of the bucket. Whether they may read a file is judged for each file. */
enum next hub_token_read_begin(struct exchange *exchange);
/* For callers that may write any key of the bucket; 401 for anonymous callers, 403 for others. */
enum next hub_token_write_begin(struct exchange *exchange);

#endif
