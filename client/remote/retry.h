/* When and how long to wait before trying a request again: exponential backoff with jitter, never
 * sooner than the server asked for. */
#ifndef CLIENT_REMOTE_RETRY_H
#define CLIENT_REMOTE_RETRY_H

#include <stdbool.h>
#include <stdint.h>

#include "client/terminal/interrupt.h"

enum {
	RETRY_FIRST_MS = 200,
	RETRY_MOST_MS = 10 * 1000,
	RETRY_AFTER_MOST_S = 300,
	RETRY_FOREVER = 1000000
};

/* 429, 500, 502, 503 and 504: the same request may succeed later. */
bool retry_worth_status(int status);
/* Delay before try `attempt` + 1 (attempt counts from 0): between half and all of FIRST doubled
 * each time up to MOST, picked by `random`; with retry_after_s >= 0 at least that (up to
 * RETRY_AFTER_MOST_S). */
int64_t retry_delay_ms(unsigned attempt, int retry_after_s, uint32_t random);

struct retry {
	struct interrupt *interrupt;
	unsigned attempts; /* tries that may follow the first */
	unsigned attempt;
};
void retry_init(struct retry *retry, struct interrupt *interrupt, unsigned attempts);
/* Sleeps and gives true when another try is allowed; false when they are used up or a signal
 * came. */
bool retry_again(struct retry *retry, int retry_after_s);
/* There was progress: counting starts over. */
void retry_reset(struct retry *retry);

#endif
