/* POST /api/repos/move {"fromRepo": "ns/a", "toRepo": "ns/b", "type": "bucket"}: renames a
 * bucket. */
#ifndef API_HUB_MOVE_H
#define API_HUB_MOVE_H

#include "api/exchange/exchange.h"

/* 200; 404 for an unknown bucket and for other types, 409 when the new name is in use, 403 when the
 * caller may not give the bucket away or not take the new name. The account of the new namespace
 * becomes the owner. */
enum next hub_move_finish(struct exchange *exchange);

#endif
