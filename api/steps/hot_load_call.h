/* What the handlers of hot-loads share: the run that the deployment of the request is bound to in
 * the caller's account (of a key with grants: in the buckets that they name), and whether the
 * caller may. The caller is signed in. */
#ifndef API_STEPS_HOT_LOAD_CALL_H
#define API_STEPS_HOT_LOAD_CALL_H

#include "api/exchange/exchange.h"

struct hot_load_call {
	struct span deployment; /* of the header fireworks-deployment */
	struct span bucket;
	struct span run;
};
/* NULL with the error set. In the exchange's arena. `permission` on the run's keys, of
 * storage/buckets/account.h. */
struct hot_load_call *hot_load_call_open(
	struct exchange *exchange, unsigned permission, struct error *err);

#endif
