/* POST /hot_load/v1/models/hot_load: a snapshot is in the bucket, make it the next step. */
#ifndef API_STEPS_POST_HOT_LOAD_H
#define API_STEPS_POST_HOT_LOAD_H

#include "api/exchange/exchange.h"

enum next post_hot_load_begin(struct exchange *exchange);
enum next post_hot_load_finish(struct exchange *exchange);
enum next post_hot_load_resume(struct exchange *exchange);
/* Trainers that tell ahead what they will send: there is nothing to prepare. */
enum next hot_load_hint_begin(struct exchange *exchange);

#endif
