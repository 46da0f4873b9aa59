/* The whole protocol as one table of routes (route.h). The router walks it; 405 and its Allow come
 * from the same rows, and a test prints it. Faces give their rows in api/<face>/<face>_routes.c. */
#ifndef API_ROUTE_ROUTER_H
#define API_ROUTE_ROUTER_H

#include "api/exchange/route.h"

/* Rows of each face, ended by a row with a NULL pattern. A pattern that names a bucket as
 * {namespace}/{bucket} gives its name in the catalog as parameter 0, and what is named behind it
 * from 1 on. */
extern const struct route admin_routes[];
extern const struct route steps_routes[];
extern const struct route hot_load_routes[];
extern const struct route hub_routes[];
extern const struct route xet_routes[];
extern const struct route s3_routes[];

/* Finds the row and sets route, face and parameters; leaves the route NULL when there is none.
 * Called by router_begin unless it was called before (the transport wants to know early what kind
 * of body the route takes). */
void router_match(struct exchange *exchange);
/* Finds the row, decodes the parameters (bad_uri when they or the query are malformed), identifies
 * and authorises the caller, then runs `begin`. On failure sets the reply in the shape of the
 * family of paths. */
enum next router_begin(struct exchange *exchange);
enum next router_finish(struct exchange *exchange);
enum next router_resume(struct exchange *exchange);
/* The path as a log may show it: where a parameter called {token} permits something, the route's
 * pattern instead. */
struct span router_log_path(const struct exchange *exchange);

#endif
