/* The query parameters of lists that come in pages. An absent one leaves its value as it is; a
 * malformed one is invalid. */
#ifndef API_EXCHANGE_PAGE_QUERY_H
#define API_EXCHANGE_PAGE_QUERY_H

#include "api/exchange/exchange.h"

/* A number of digits alone, at most INT64_MAX. */
int page_query_number(
	struct exchange *exchange, const char *name, uint64_t *inout_number, struct error *err);
/* `limit`: at least 1, `fallback` when absent; numbers over `most` count as `most`. */
int page_query_limit(struct exchange *exchange, uint64_t fallback, uint64_t most,
	uint64_t *out_limit, struct error *err);

#endif
