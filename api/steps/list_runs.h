/* GET /v1/runs/{bucket}?after=&limit=: the runs of a bucket, in byte order of their names. */
#ifndef API_STEPS_LIST_RUNS_H
#define API_STEPS_LIST_RUNS_H

#include "api/exchange/exchange.h"

enum next list_runs_begin(struct exchange *exchange);

#endif
