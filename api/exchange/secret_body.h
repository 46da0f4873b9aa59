/* Small request bodies that hold a secret: their memory is overwritten before it is freed, also
 * when the client breaks off. */
#ifndef API_EXCHANGE_SECRET_BODY_H
#define API_EXCHANGE_SECRET_BODY_H

#include "api/exchange/exchange.h"

/* As exchange_accept_small. */
enum next secret_body_accept(struct exchange *exchange, size_t cap_bytes);
/* Empties the body and overwrites its memory now, when it was parsed. */
void secret_body_wipe(struct exchange *exchange);

#endif
