/* The query parameters of lists below /-/ that come in pages: `after`, and `limit`. */
#ifndef API_ADMIN_ADMIN_PAGE_H
#define API_ADMIN_ADMIN_PAGE_H

#include "api/exchange/exchange.h"

/* `limit`: at least 1, `fallback` when absent; numbers over `most` count as `most`. invalid. */
int admin_page_limit(struct exchange *exchange, uint64_t fallback, uint64_t most,
	uint64_t *out_limit, struct error *err);
/* `after` as a number: 0 when absent. invalid. */
int admin_page_after(struct exchange *exchange, uint64_t *out_after, struct error *err);

/* A time, or null for 0. */
struct json_writer;
void admin_page_print_time(struct json_writer *json, const char *name, int64_t ms);

#endif
