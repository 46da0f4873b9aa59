/* Metrics: the page that Prometheus reads. */
#ifndef API_ADMIN_ADMIN_METRICS_H
#define API_ADMIN_ADMIN_METRICS_H

#include "api/exchange/exchange.h"

enum next admin_metrics_begin(struct exchange *exchange);
enum next admin_metrics_resume(struct exchange *exchange);

#endif
