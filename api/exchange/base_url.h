/* The URL under which clients know this server: "https://host:9000", without a slash at the end.
 * URLs in replies begin with it. */
#ifndef API_EXCHANGE_BASE_URL_H
#define API_EXCHANGE_BASE_URL_H

#include "api/exchange/exchange.h"

/* The setting public_url. Without it, the scheme of this request (https also where a proxy sent
 * `X-Forwarded-Proto: https`) and its Host header; "localhost" when that header is not a valid
 * host. Arena or static text. */
const char *base_url(struct exchange *exchange);

#endif
