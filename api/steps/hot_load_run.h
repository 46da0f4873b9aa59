/* What the handlers of hot-loads share: the run that the deployment of the request is bound to in
 * the caller's account (of a key with grants: in the buckets that they name), and whether the
 * caller may. The caller is signed in. */
#ifndef API_STEPS_HOT_LOAD_RUN_H
#define API_STEPS_HOT_LOAD_RUN_H

#include "api/exchange/exchange.h"
#include "storage/runs/run.h"

struct hot_load_run {
	struct span deployment; /* of the header fireworks-deployment */
	struct run_ref run;     /* in the bucket that was judged */
};
/* NULL with the error set. In the exchange's arena. `permission` on the run's keys, of
 * storage/buckets/account.h. */
struct hot_load_run *hot_load_run_find(
	struct exchange *exchange, unsigned permission, struct error *err);

#endif
