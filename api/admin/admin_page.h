/* What replies of the admin face print alike. */
#ifndef API_ADMIN_ADMIN_PAGE_H
#define API_ADMIN_ADMIN_PAGE_H

#include "api/exchange/exchange.h"

/* A time, or null for 0. */
struct json_writer;
void admin_page_print_time(struct json_writer *json, const char *name, int64_t ms);

#endif
