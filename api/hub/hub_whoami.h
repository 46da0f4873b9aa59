/* GET /api/whoami-v2: the key that asks, as a user whose name is its namespace. And what else
 * clients ask for that has one answer. */
#ifndef API_HUB_WHOAMI_H
#define API_HUB_WHOAMI_H

#include "api/exchange/exchange.h"

enum next hub_whoami_begin(struct exchange *exchange);
/* GET /api/agent-harnesses: there are none. */
enum next hub_harnesses_begin(struct exchange *exchange);
/* Models, datasets, spaces, and buckets that are named without their namespace: 404 with
 * X-Error-Code RepoNotFound, which clients take for an answer. */
enum next hub_no_repository_begin(struct exchange *exchange);
/* What would make or change one: 404 without that code, since the command `hf` keeps the sentence
 * from its users where the code is there. */
enum next hub_no_repositories_begin(struct exchange *exchange);
/* POST /oauth/device, which `hf auth login` asks without --token: 404 that says what to do. */
enum next hub_no_login_begin(struct exchange *exchange);

#endif
