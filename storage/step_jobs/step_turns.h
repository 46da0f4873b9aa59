/* The turns of accounts in the background work on steps: the account that was served longest ago
 * comes first. So an account that publishes much keeps its own steps waiting, and those of other
 * accounts only if they share its slot. One thread; internal to step_worker. */
#ifndef STORAGE_STEP_JOBS_STEP_TURNS_H
#define STORAGE_STEP_JOBS_STEP_TURNS_H

#include <stdbool.h>
#include <stdint.h>

enum { STEP_TURNS = 256 };

struct step_turns { /* zeroed: nobody was served yet */
	uint64_t count;
	uint64_t served[STEP_TURNS]; /* when, by the account's number modulo STEP_TURNS; 0: never */
};
/* When the account was served last; the account with the lowest value comes first. 0: never
 * served. */
uint64_t step_turns_last(const struct step_turns *turns, int64_t account);
void step_turns_serve(struct step_turns *turns, int64_t account);

#endif
