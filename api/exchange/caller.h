/* Who pays for what a request takes: its key, or the address of a caller without a key
 * (base/thread/share.h). */
#ifndef API_EXCHANGE_CALLER_H
#define API_EXCHANGE_CALLER_H

#include "api/exchange/exchange.h"

/* As far as it is known: before identify it is a stranger. */
struct share_caller caller_of(const struct exchange *exchange);

#endif
