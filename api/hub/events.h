/* GET /api/buckets/{namespace}/{bucket}/events: tells changes of a bucket's files as server-sent
 * events when they happen. The reply has no end. An idle one occupies no thread and no reader of
 * the catalog. docs/protocol/hub.md, "FollowBucket". */
#ifndef API_HUB_EVENTS_H
#define API_HUB_EVENTS_H

#include "api/exchange/exchange.h"

/* Begins where the query says: at `cursor` (from an event), at `since` (an updatedAt of the
 * bucket), or now. invalid; busy when too many streams are open. */
enum next events_begin(struct exchange *exchange);

#endif
