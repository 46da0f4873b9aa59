/* The handlers of what the console shows at a glance and live. api/steps/steps_routes.c and
 * api/admin/admin_routes.c have their rows. */
#ifndef API_LIVE_HANDLERS_H
#define API_LIVE_HANDLERS_H

#include "api/exchange/exchange.h"

/* GET /v1/runs?after=&limit=: the runs of all buckets that the caller may read, with their
 * fleets. */
enum next list_all_runs_begin(struct exchange *exchange);
enum next list_all_runs_resume(struct exchange *exchange);

/* GET /-/overview: what the server is and holds and does. */
enum next overview_begin(struct exchange *exchange);
enum next overview_resume(struct exchange *exchange);

/* GET /-/events?runs=&server=&replicas=: a stream of what changes. */
enum next live_events_begin(struct exchange *exchange);

#endif
