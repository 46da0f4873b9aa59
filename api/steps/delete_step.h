/* DELETE /v1/runs/{bucket}/{run}/steps/{step}: removes a step that no kept step is based on. */
#ifndef API_STEPS_DELETE_STEP_H
#define API_STEPS_DELETE_STEP_H

#include "api/exchange/exchange.h"

enum next delete_step_begin(struct exchange *exchange);

#endif
