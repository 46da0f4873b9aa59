/* GET /v1/runs/{bucket}/{run}/path?have=&digest=&want=: the cheapest path from one step, or from
 * nothing, to another. */
#ifndef API_STEPS_STEP_PATH_H
#define API_STEPS_STEP_PATH_H

#include "api/exchange/exchange.h"

enum next step_path_begin(struct exchange *exchange);
enum next step_path_resume(struct exchange *exchange);

#endif
