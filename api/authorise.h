/* May the caller do this? Judged once for the matched route, before its handler runs, and again by handlers that touch more than the route
 * names: copies (their source), lists of keys. */
#ifndef API_AUTHORISE_H
#define API_AUTHORISE_H

#include "api/exchange.h"

/* The access rule of exchange->route. 0; no_credentials, denied. */
int authorise(struct exchange *exchange, struct error *err);
/* One permission (storage/account.h) on one key of a bucket, which need not be the route's. 0; no_credentials, denied. A bucket that does not
 * exist is judged as if it were the caller's, so that the caller learns that it does not exist. */
int authorise_key(struct exchange *exchange, struct span bucket, struct span key, unsigned permission, struct error *err);

#endif
