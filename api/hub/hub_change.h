/* What the handlers share that change a bucket: the exchange's state is the change, and `release`
 * frees it. */
#ifndef API_HUB_CHANGE_H
#define API_HUB_CHANGE_H

#include "api/exchange/exchange.h"
#include "storage/buckets/bucket.h"

/* Waits for a change that was started with exchange_wake_owner and the exchange. */
enum next hub_change_wait(struct exchange *exchange, struct bucket_change *change);
/* For `resume`. */
int hub_change_outcome(struct exchange *exchange, struct error *err);
/* For `resume`: 200 and {}, or the failure. */
enum next hub_change_resume(struct exchange *exchange);

#endif
