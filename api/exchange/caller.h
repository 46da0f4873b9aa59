/* The owner in whose name a request takes shares (base/thread/share.h): its key or, without a key,
 * the client's address. */
#ifndef API_EXCHANGE_CALLER_H
#define API_EXCHANGE_CALLER_H

#include "api/exchange/exchange.h"

/* Before identify every caller is a stranger. */
struct share_caller caller_of(const struct exchange *exchange);
/* The client's address as text, "unix" without one: in the arena, or static. */
const char *caller_address(struct exchange *exchange);

#endif
