/* The whole protocol as one table of routes (route.h). The router searches it, and 405 with its
 * Allow header comes from the same rows. tests/unit/api/route/test_routes.c prints the table. The
 * rows of a face are in api/<face>/<face>_routes.c. */
#ifndef API_ROUTE_ROUTER_H
#define API_ROUTE_ROUTER_H

#include "api/exchange/route.h"

/* The rows of each face, ended by a row with a NULL pattern. A pattern with {namespace}/{bucket}
 * gives the bucket's name in the catalog as parameter 0, and the names after it from 1 on. */
extern const struct route admin_routes[];
extern const struct route console_routes[];
extern const struct route steps_routes[];
extern const struct route hot_load_routes[];
extern const struct route hub_routes[];
extern const struct route xet_routes[];
extern const struct route s3_routes[];

/* A path below "/xet/damage-<any>/" means the one below "/xet/": the server is known to some clients
 * by such a URL (api/hub/hub_token.c). */
#define ROUTER_XET_DAMAGE "/xet/damage-"

/* Finds the row and sets route, face and parameters. The route stays NULL when no row fits.
 * router_begin calls it unless it found a row before. (The transport calls it early to learn the
 * kind of body that the route takes.) */
void router_match(struct exchange *exchange);
/* Finds the row, identifies the caller, decodes the parameters (bad_uri when they or the query are
 * malformed) and authorises the caller. Fails with what the reply of the request must say. */
int router_prepare(struct exchange *exchange, struct error *err);
/* The same, then runs `begin`. On failure it sets an error reply in the form of the face. */
enum next router_begin(struct exchange *exchange);
enum next router_finish(struct exchange *exchange);
enum next router_resume(struct exchange *exchange);
/* Whether the path of a signed request, which need not be encoded, means a bucket or one of its
 * keys whatever the method and the query, and nothing of the server's own. */
bool router_is_of_bucket(struct span path);
/* The path as a log may show it. A path with the parameter {token} is a secret; the route's pattern
 * replaces it. */
struct span router_log_path(const struct exchange *exchange);

#endif
