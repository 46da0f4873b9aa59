/* GET /-/buckets: the buckets that the caller may know of, with their totals.
 * docs/protocol/admin.md. */
#ifndef API_ADMIN_ADMIN_BUCKET_LIST_H
#define API_ADMIN_ADMIN_BUCKET_LIST_H

#include "api/exchange/exchange.h"

enum next admin_bucket_list_begin(struct exchange *exchange);
enum next admin_bucket_list_resume(struct exchange *exchange);

#endif
