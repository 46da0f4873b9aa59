#include "storage/step_jobs/step_turns.h"

uint64_t step_turns_last(const struct step_turns *turns, int64_t account)
{
	return turns->served[(uint64_t)account % STEP_TURNS];
}

void step_turns_serve(struct step_turns *turns, int64_t account)
{
	turns->served[(uint64_t)account % STEP_TURNS] = ++turns->count;
}
