/* Whether the server is ready: the catalog can be read and no stop has begun. */
#ifndef API_EXCHANGE_READINESS_H
#define API_EXCHANGE_READINESS_H

#include "api/exchange/exchange.h"

/* `writes`: also checks that the store accepts changes, as far as is known. Fails with busy,
 * damaged, read_only or no_space. */
int readiness_check(struct exchange *exchange, bool writes, struct error *err);
/* Whether the disk has no room for uploads. */
bool readiness_is_full(const struct exchange *exchange);

#endif
