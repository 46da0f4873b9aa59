/* The JSON errors of the steps face. The admin face uses face_steps too. */
#ifndef API_STEPS_STEPS_ERROR_H
#define API_STEPS_STEPS_ERROR_H

#include "api/exchange/exchange.h"

/* As exchange_fail, but `collected` also names the nearest anchor that is kept (UINT64_MAX:
 * none). */
enum next steps_error_fail(struct exchange *exchange, const struct error *err, uint64_t anchor);
/* Replies 400 "invalid" with "The parameter <name> <rule>.", for a parameter of the path or
 * query. */
enum next steps_error_invalid(struct exchange *exchange, const char *name, const char *rule);

#endif
