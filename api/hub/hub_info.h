/* GET and DELETE /api/buckets/{namespace}/{bucket}, and PUT .../settings: shows, deletes and
 * changes a bucket. */
#ifndef API_HUB_INFO_H
#define API_HUB_INFO_H

#include "api/exchange/exchange.h"

enum next hub_info_begin(struct exchange *exchange);
/* Deletes the bucket with all its files; 409 while it has runs. */
enum next hub_delete_begin(struct exchange *exchange);
/* Takes "private" and "visibility"; there are no other settings. Replies with the changed
 * bucket. */
enum next hub_settings_finish(struct exchange *exchange);
enum next hub_settings_resume(struct exchange *exchange);

#endif
