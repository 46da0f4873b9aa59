/* POST /hot_load/v1/models/hot_load: makes a snapshot in the bucket the next step. */
#ifndef API_STEPS_POST_HOT_LOAD_H
#define API_STEPS_POST_HOT_LOAD_H

#include "api/exchange/exchange.h"

enum next post_hot_load_begin(struct exchange *exchange);
enum next post_hot_load_finish(struct exchange *exchange);
enum next post_hot_load_resume(struct exchange *exchange);
/* Some trainers announce what they will send. The server needs no preparation, so it only
 * confirms. */
enum next hot_load_hint_begin(struct exchange *exchange);

#endif
