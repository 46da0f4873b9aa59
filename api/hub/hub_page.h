/* Pages of listings on the Hub's face: the number of entries, and the Link to the next page, which
 * clients follow as it is. */
#ifndef API_HUB_PAGE_H
#define API_HUB_PAGE_H

#include "api/exchange/exchange.h"

/* Reads the query's `limit`, reduced to `most`; `usual` when there is none. invalid when it is not
 * a number from 1. */
int hub_page_limit(struct exchange *exchange, uint64_t usual, uint64_t most, uint64_t *out_limit,
	struct error *err);
/* Adds the header Link, rel="next": the absolute URL of this request with its query and this
 * `cursor`. invalid when that is too long: without a Link clients would take the listing as
 * complete. */
int hub_page_link(struct exchange *exchange, struct span cursor, struct error *err);

#endif
