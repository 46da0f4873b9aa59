/* GET .../webhook: the URL of the run's webhook and the secret that signs its requests, for callers
 * that may write to the run. */
#ifndef API_STEPS_RUN_WEBHOOK_H
#define API_STEPS_RUN_WEBHOOK_H

#include "api/exchange/exchange.h"

enum next run_webhook_begin(struct exchange *exchange);

#endif
