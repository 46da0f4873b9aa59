/* Telemetry of clients: it is read and dropped, because clients wait for the reply. And the health
 * of the Xet face. */
#ifndef API_XET_TELEMETRY_H
#define API_XET_TELEMETRY_H

#include "api/exchange/exchange.h"

enum next telemetry_begin(struct exchange *exchange);
enum next telemetry_finish(struct exchange *exchange);
enum next telemetry_health_begin(struct exchange *exchange);

#endif
