/* PUT /v1/runs/{bucket}/{run}/steps/{step}: publishes a step. 201, or 200 when the same step exists
 * already. */
#ifndef API_STEPS_PUBLISH_STEP_H
#define API_STEPS_PUBLISH_STEP_H

#include "api/exchange/exchange.h"

enum next publish_step_begin(struct exchange *exchange);
enum next publish_step_finish(struct exchange *exchange);
enum next publish_step_resume(struct exchange *exchange);

#endif
