/* GET /v1/runs/{bucket}/{run}/steps?from=&limit=: manifests in rising order of steps. */
#ifndef API_STEPS_LIST_STEPS_H
#define API_STEPS_LIST_STEPS_H

#include "api/exchange/exchange.h"

enum next list_steps_begin(struct exchange *exchange);

#endif
