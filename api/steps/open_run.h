/* POST /v1/runs/{bucket}/{run}: opens the run for writing and shuts out earlier writers. */
#ifndef API_STEPS_OPEN_RUN_H
#define API_STEPS_OPEN_RUN_H

#include "api/exchange/exchange.h"

enum next open_run_begin(struct exchange *exchange);
enum next open_run_finish(struct exchange *exchange);
enum next open_run_resume(struct exchange *exchange);

#endif
