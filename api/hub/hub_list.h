/* GET /api/buckets/{owner}: under "me" what the caller's account owns (a key with grants: the
 * buckets that these name), under a namespace what is named there. Of both only what the caller may
 * know of. Query: search (part of the name, in any case), limit, cursor. */
#ifndef API_HUB_LIST_H
#define API_HUB_LIST_H

#include "api/exchange/exchange.h"

/* 200 with an array; 401 for an anonymous "me"; 404 for a namespace that nobody has. */
enum next hub_list_begin(struct exchange *exchange);
/* GET /api/settings/repositories, and /api/organizations/{account}/settings/repositories: what the
 * caller's account owns, or that account, with the storage that it takes. 403 for another account,
 * 404 for one that nobody has. */
enum next hub_list_repositories_begin(struct exchange *exchange);

#endif
