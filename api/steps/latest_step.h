/* GET /v1/runs/{bucket}/{run}/steps/latest?after=N&wait=S: the newest step above N as soon as it
 * exists, or 204 after S seconds. */
#ifndef API_STEPS_LATEST_STEP_H
#define API_STEPS_LATEST_STEP_H

#include "api/exchange/exchange.h"

enum next latest_step_begin(struct exchange *exchange);
enum next latest_step_resume(struct exchange *exchange);

#endif
