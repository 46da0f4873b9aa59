/* GET /-/buckets/{bucket}/usage and .../search: what the keys below a prefix take, and the keys
 * that contain a text. docs/protocol/admin.md. */
#ifndef API_ADMIN_ADMIN_USAGE_H
#define API_ADMIN_ADMIN_USAGE_H

#include "api/exchange/exchange.h"

enum next admin_usage_begin(struct exchange *exchange);
enum next admin_usage_resume(struct exchange *exchange);
enum next admin_search_begin(struct exchange *exchange);
enum next admin_search_resume(struct exchange *exchange);

#endif
