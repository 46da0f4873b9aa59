/* PUT, GET, DELETE /v1/runs/{bucket}/{run}/pins/{name}, GET .../pins. */
#ifndef API_STEPS_PINS_H
#define API_STEPS_PINS_H

#include "api/exchange/exchange.h"

enum next put_pin_begin(struct exchange *exchange);
enum next put_pin_finish(struct exchange *exchange);
enum next put_pin_resume(struct exchange *exchange);
enum next get_pin_begin(struct exchange *exchange);
enum next delete_pin_begin(struct exchange *exchange); /* resume: steps_request_resume_empty */
enum next list_pins_begin(struct exchange *exchange);

#endif
