/* Judges the tokens of fetch URLs. Such a URL needs no credentials beside its token. */
#ifndef API_XET_FETCH_PERMIT_H
#define API_XET_FETCH_PERMIT_H

#include "api/exchange/exchange.h"
#include "api/xet/fetch_token.h"

/* The token must be ours and not expired. Unless it is shared, its caller, which becomes
 * exchange->principal, must still be one that may know of the bucket; if it is, the bucket must
 * still be there and the setting shared_urls on. Fails with denied. */
int fetch_permit_judge(
	struct exchange *exchange, struct span text, struct fetch_token *out, struct error *err);
/* Sets the error of a URL that is refused. */
int fetch_permit_refuse(struct error *err);

#endif
