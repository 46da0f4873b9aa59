/* GET /api/buckets/{namespace}/{bucket}/events: what happens to the files of a bucket, as
 * server-sent events while it happens. A reply without an end; an idle one holds no thread and no
 * reader. docs/protocol/hub.md, "FollowBucket". */
#ifndef API_HUB_EVENTS_H
#define API_HUB_EVENTS_H

#include "api/exchange/exchange.h"

/* The bucket's files from where the query says: `cursor` (of an event), `since` (an updatedAt of
 * the bucket) or now. invalid; busy when as many streams are open as may be. */
enum next events_begin(struct exchange *exchange);

#endif
