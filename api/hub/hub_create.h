/* POST /api/buckets/{namespace}/{name}: makes a bucket. The namespace may be "me". */
#ifndef API_HUB_CREATE_H
#define API_HUB_CREATE_H

#include "api/exchange/exchange.h"

/* 200 with url, name and id; 409 with error, url, name and id when the bucket exists. Clients that
 * accept an existing bucket read the same members of both. 401, 403, 400. */
enum next hub_create_begin(struct exchange *exchange);
enum next hub_create_finish(struct exchange *exchange);
enum next hub_create_resume(struct exchange *exchange);

#endif
