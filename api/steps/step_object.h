/* GET and HEAD /v1/runs/{bucket}/{run}/steps/{step}/objects/{name*}: the bytes as published, also
 * when the key was overwritten or deleted since. */
#ifndef API_STEPS_STEP_OBJECT_H
#define API_STEPS_STEP_OBJECT_H

#include "api/exchange/exchange.h"

enum next step_object_begin(struct exchange *exchange);
enum next step_object_resume(struct exchange *exchange);

#endif
