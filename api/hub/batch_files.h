/* POST /api/buckets/{namespace}/{bucket}/batch: adds, copies and deletes files, line by line. */
#ifndef API_HUB_BATCH_FILES_H
#define API_HUB_BATCH_FILES_H

#include "api/exchange/exchange.h"

enum next batch_files_begin(struct exchange *exchange);
enum next batch_files_finish(struct exchange *exchange);
enum next batch_files_resume(struct exchange *exchange);

#endif
