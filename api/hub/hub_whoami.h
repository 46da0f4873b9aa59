/* GET /api/whoami-v2: shows the caller's key as a user whose name is the key's namespace. And other
 * requests with a fixed reply. */
#ifndef API_HUB_WHOAMI_H
#define API_HUB_WHOAMI_H

#include "api/exchange/exchange.h"

enum next hub_whoami_begin(struct exchange *exchange);
/* GET /api/agent-harnesses: there are none. */
enum next hub_harnesses_begin(struct exchange *exchange);
/* For models, datasets, spaces, and buckets that are named without their namespace: 404 with
 * X-Error-Code RepoNotFound, which clients understand. */
enum next hub_no_repository_begin(struct exchange *exchange);
/* For requests that would make or change one: 404 without that code, because with it the command
 * `hf` does not show the message to its users. */
enum next hub_no_repositories_begin(struct exchange *exchange);
/* POST /oauth/device, which `hf auth login` sends without --token: 404 that says what to do. */
enum next hub_no_login_begin(struct exchange *exchange);

#endif
