/* GET and DELETE /api/buckets/{namespace}/{bucket}, and PUT .../settings. */
#ifndef API_HUB_INFO_H
#define API_HUB_INFO_H

#include "api/exchange/exchange.h"

enum next hub_info_begin(struct exchange *exchange);
/* With all that it holds; 409 while it holds runs. */
enum next hub_delete_begin(struct exchange *exchange);
/* Takes "private" and "visibility", and knows no other setting. Replies with the bucket as it is
 * then. */
enum next hub_settings_finish(struct exchange *exchange);
enum next hub_settings_resume(struct exchange *exchange);

#endif
