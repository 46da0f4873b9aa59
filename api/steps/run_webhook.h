/* GET .../webhook: what the run's webhooks are signed with, for those who may write the run. */
#ifndef API_STEPS_RUN_WEBHOOK_H
#define API_STEPS_RUN_WEBHOOK_H

#include "api/exchange/exchange.h"

enum next run_webhook_begin(struct exchange *exchange);

#endif
