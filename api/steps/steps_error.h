/* The JSON errors of the steps face (face_steps; the admin face uses it too). */
#ifndef API_STEPS_STEPS_ERROR_H
#define API_STEPS_STEPS_ERROR_H

#include "api/exchange/exchange.h"

/* As exchange_fail; `collected` also names the nearest anchor that is kept (UINT64_MAX: there is
 * none). */
enum next steps_error_fail(struct exchange *exchange, const struct error *err, uint64_t anchor);
/* 400 "invalid" about one parameter of the path or query. */
enum next steps_error_invalid(struct exchange *exchange, const char *name, const char *rule);

#endif
