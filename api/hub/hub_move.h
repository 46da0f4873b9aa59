/* POST /api/repos/move {"fromRepo": "ns/a", "toRepo": "ns/b", "type": "bucket"}. */
#ifndef API_HUB_MOVE_H
#define API_HUB_MOVE_H

#include "api/exchange/exchange.h"

/* 200; 404 for an unknown bucket and for other types, 409 when the new name is in use, 403 when it
 * is not the caller's to give or to take. The bucket becomes the account's whose namespace it moves
 * to. */
enum next hub_move_finish(struct exchange *exchange);

#endif
