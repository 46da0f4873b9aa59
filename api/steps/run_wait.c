#include "api/steps/run_wait.h"

struct run_wait { /* the exchange's state */
	struct run_change *change;
	const void *answer;
};

static void release(struct exchange *exchange)
{
	struct run_wait *const wait = exchange->state;
	run_change_free(wait->change);
}

enum next run_wait_with(struct exchange *exchange, struct run_change *change, const void *answer)
{
	struct run_wait *const wait = arena_take(exchange->arena, sizeof(*wait));
	ASSERT(wait != NULL);
	wait->change = change;
	wait->answer = answer;
	exchange->state = wait;
	exchange->release = release;
	return NEXT_WAIT;
}

enum next run_wait_for(struct exchange *exchange, struct run_change *change)
{
	return run_wait_with(exchange, change, NULL);
}

const void *run_wait_answer(const struct exchange *exchange)
{
	return ((const struct run_wait *)exchange->state)->answer;
}

int run_wait_outcome(struct exchange *exchange, struct run_outcome *out, struct error *err)
{
	struct run_wait *const wait = exchange->state;
	return run_change_outcome(wait->change, out, err);
}

enum next run_wait_resume_empty(struct exchange *exchange)
{
	struct run_outcome outcome;
	struct error err = {0};
	if (run_wait_outcome(exchange, &outcome, &err) != 0)
		return exchange_fail(exchange, &err);
	return exchange_reply_empty(exchange, 204);
}
