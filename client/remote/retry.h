/* Decides when to try a request again: exponential backoff with jitter, never sooner than the
 * server asks for. */
#ifndef CLIENT_REMOTE_RETRY_H
#define CLIENT_REMOTE_RETRY_H

#include <stdbool.h>
#include <stdint.h>

#include "client/work/stop.h"

enum {
	RETRY_FIRST_MS = 200,
	RETRY_MOST_MS = 10 * 1000,
	RETRY_AFTER_MOST_S = 300,
	RETRY_FOREVER = 1000000
};

/* True for 429, 500, 502, 503 and 504: the same request may succeed later. */
bool retry_worth_status(int status);
/* The delay before the retry number `attempt`, which counts from 0. The ceiling is RETRY_FIRST_MS,
 * doubled for each attempt, up to RETRY_MOST_MS; `random` picks a delay between half of the ceiling
 * and all of it. A retry_after_s >= 0 is added, up to RETRY_AFTER_MOST_S. */
int64_t retry_delay_ms(unsigned attempt, int retry_after_s, uint32_t random);

struct retry {
	struct stop *stop;
	unsigned attempts; /* tries that may follow the first */
	unsigned attempt;  /* tries that have followed it so far */
};
void retry_init(struct retry *retry, struct stop *stop, unsigned attempts);
/* Sleeps and returns true when another try is allowed. False when the tries are used up or a signal
 * has come. */
bool retry_again(struct retry *retry, int retry_after_s);
/* Starts the count over, after a try that made progress. */
void retry_reset(struct retry *retry);

#endif
