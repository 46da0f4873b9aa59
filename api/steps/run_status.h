/* GET /v1/runs/{bucket}/{run}: head, epoch, schema, retention. */
#ifndef API_STEPS_RUN_STATUS_H
#define API_STEPS_RUN_STATUS_H

#include "api/exchange/exchange.h"

enum next run_status_begin(struct exchange *exchange);

#endif
