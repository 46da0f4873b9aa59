/* POST /api/buckets/{namespace}/{bucket}/paths-info: tells which of up to 1,000 paths are files,
 * and the facts about these. */
#ifndef API_HUB_PATHS_INFO_H
#define API_HUB_PATHS_INFO_H

#include "api/exchange/exchange.h"

enum next paths_info_begin(struct exchange *exchange);
enum next paths_info_finish(struct exchange *exchange);
enum next paths_info_resume(struct exchange *exchange);

#endif
