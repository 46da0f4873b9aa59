/* Finds the run of a hot-load: the one that is bound to the request's deployment in the caller's
 * account or, for a key with grants, in the buckets that they name. Also judges the caller, who
 * must be signed in. */
#ifndef API_STEPS_HOT_LOAD_RUN_H
#define API_STEPS_HOT_LOAD_RUN_H

#include "api/exchange/exchange.h"
#include "storage/runs/run.h"

struct hot_load_run {
	struct span deployment; /* the header fireworks-deployment */
	struct run_ref run;     /* in the bucket that was judged */
};
/* In the exchange's arena; NULL with the error set. The caller must have `permission` (of
 * storage/buckets/account.h) on the run's keys. */
struct hot_load_run *hot_load_run_find(
	struct exchange *exchange, unsigned permission, struct error *err);

#endif
