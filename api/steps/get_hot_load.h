/* GET /hot_load/v1/models/hot_load: the snapshot that each replica runs, the oldest first. */
#ifndef API_STEPS_GET_HOT_LOAD_H
#define API_STEPS_GET_HOT_LOAD_H

#include "api/exchange/exchange.h"

enum next get_hot_load_begin(struct exchange *exchange);
enum next get_hot_load_resume(struct exchange *exchange);

#endif
