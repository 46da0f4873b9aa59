/* PUT /v1/runs/{bucket}/{run}/steps/{step}/parts/{part}?of=N: stores one rank's part of a step. The
 * last part publishes the step. */
#ifndef API_STEPS_PUT_PART_H
#define API_STEPS_PUT_PART_H

#include "api/exchange/exchange.h"

enum next put_part_begin(struct exchange *exchange);
enum next put_part_finish(struct exchange *exchange);
enum next put_part_resume(struct exchange *exchange);

#endif
