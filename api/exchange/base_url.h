/* What clients call this server: "https://host:9000", without a slash at the end. URLs in replies
 * begin with it. */
#ifndef API_EXCHANGE_BASE_URL_H
#define API_EXCHANGE_BASE_URL_H

#include "api/exchange/exchange.h"

/* The setting public_url, else as this request came: its scheme (https also where a proxy says
 * `X-Forwarded-Proto: https`) and its Host, which is checked to be one. Arena or static text. */
const char *base_url(struct exchange *exchange);

#endif
