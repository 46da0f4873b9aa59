/* Whether the server serves: the catalog answers and no stop has begun. */
#ifndef API_READINESS_H
#define API_READINESS_H

#include "api/exchange.h"

/* `writes`: whether changes are taken, too. 0; busy, read_only, or what the catalog says. */
int readiness_check(struct exchange *exchange, bool writes, struct error *err);

#endif
