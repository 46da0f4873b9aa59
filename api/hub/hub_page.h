/* Pages of listings on the Hub: how many entries, from where, and the Link to the next page, which
 * clients follow as it stands. */
#ifndef API_HUB_PAGE_H
#define API_HUB_PAGE_H

#include "api/exchange/exchange.h"

/* The query's `limit`, cut to `most`; `usual` when there is none; invalid when it is no number from
 * 1. */
int hub_page_limit(struct exchange *exchange, uint64_t usual, uint64_t most, uint64_t *out_limit,
	struct error *err);
/* Adds the header Link, rel="next": this request's URL, absolute, with all its query but with this
 * `cursor`. invalid when that is too long: a client that is told nothing takes the listing for
 * complete. */
int hub_page_link(struct exchange *exchange, struct span cursor, struct error *err);

#endif
