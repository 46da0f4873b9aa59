/* GET /api/buckets/{owner}: lists the buckets that the caller may know of. Under "me" these are the
 * buckets that the caller's account owns (for a key with grants: those that the grants name), under
 * a namespace the buckets with a name in it. Query: search (part of the name, in any case), limit,
 * cursor. */
#ifndef API_HUB_LIST_H
#define API_HUB_LIST_H

#include "api/exchange/exchange.h"

/* 200 with an array; 401 for an anonymous "me"; 404 for a namespace that does not exist. */
enum next hub_list_begin(struct exchange *exchange);
/* GET /api/settings/repositories, and /api/organizations/{account}/settings/repositories: lists the
 * buckets that the caller's account, or the named one, owns, with the storage that they take. 403
 * for another account, 404 for one that does not exist. */
enum next hub_list_repositories_begin(struct exchange *exchange);

#endif
