/* GET /v1/runs/{bucket}/{run}/steps/{step}: the manifest. ?tensors=true adds the digest of each
 * tensor. */
#ifndef API_STEPS_GET_STEP_H
#define API_STEPS_GET_STEP_H

#include "api/exchange/exchange.h"

enum next get_step_begin(struct exchange *exchange);

#endif
