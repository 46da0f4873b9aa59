/* Whether the server serves: the catalog answers and no stop has begun. */
#ifndef API_EXCHANGE_READINESS_H
#define API_EXCHANGE_READINESS_H

#include "api/exchange/exchange.h"

/* `writes`: whether changes are taken, too. 0; busy, read_only, no_space, or what the catalog
 * says. */
int readiness_check(struct exchange *exchange, bool writes, struct error *err);
/* Whether the disk has no room for uploads. */
bool readiness_is_full(const struct exchange *exchange);

#endif
