/* GET /-/storage and /-/packs: the store in sums, and its packs one by one.
 * docs/protocol/admin.md. */
#ifndef API_ADMIN_ADMIN_STORAGE_H
#define API_ADMIN_ADMIN_STORAGE_H

#include "api/exchange/exchange.h"

enum next admin_storage_begin(struct exchange *exchange);
enum next admin_storage_resume(struct exchange *exchange);
enum next admin_packs_begin(struct exchange *exchange);
enum next admin_packs_resume(struct exchange *exchange);

#endif
