/* What clients tell of themselves: taken and forgotten, since they wait for the answer. And the
 * health of the Xet face. */
#ifndef API_XET_TELEMETRY_H
#define API_XET_TELEMETRY_H

#include "api/exchange/exchange.h"

enum next telemetry_begin(struct exchange *exchange);
enum next telemetry_finish(struct exchange *exchange);
enum next telemetry_health_begin(struct exchange *exchange);

#endif
