/* The keys that a publisher may name. */
#ifndef API_STEPS_PUBLISH_KEYS_H
#define API_STEPS_PUBLISH_KEYS_H

#include "api/exchange/exchange.h"
#include "wire/step_message.h"

/* Fails with denied unless each key of the step belongs to the run, where the route's access
 * includes writing, or may be read by the caller. The reason is that readers of the run get the
 * bytes of these keys, and that error messages contain their digests. */
int publish_keys_check(
	struct exchange *exchange, const struct step_message *step, struct error *err);

#endif
