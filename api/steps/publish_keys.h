/* Which keys a publisher may name. */
#ifndef API_STEPS_PUBLISH_KEYS_H
#define API_STEPS_PUBLISH_KEYS_H

#include "api/exchange/exchange.h"
#include "wire/step_message.h"

/* Readers of the run get the bytes of what it names, and a refusal tells their digest. So whoever
 * publishes names keys of the run, which the route lets him write, or keys that he may read; else
 * denied. */
int publish_keys_check(
	struct exchange *exchange, const struct step_message *step, struct error *err);

#endif
