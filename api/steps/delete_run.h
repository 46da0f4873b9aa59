/* DELETE /v1/runs/{bucket}/{run}: deletes a run. Its name is free at once. */
#ifndef API_STEPS_DELETE_RUN_H
#define API_STEPS_DELETE_RUN_H

#include "api/exchange/exchange.h"

enum next delete_run_begin(struct exchange *exchange);

#endif
