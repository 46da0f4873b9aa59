/* The reply to changes without a result. */
#ifndef API_HUB_CHANGE_H
#define API_HUB_CHANGE_H

#include "api/exchange/exchange.h"

/* `resume`: 200 and {}, or the failure of exchange->call. */
enum next hub_change_resume(struct exchange *exchange);

#endif
