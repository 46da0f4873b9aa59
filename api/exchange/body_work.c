/* While `finish` runs elsewhere the reactor waits for its end, and for nothing else. What `finish`
 * has started may wake the exchange before that end: such a wake is kept. So:
 *
 *   RUNS --end--> the reactor resumes: a reply, or NEXT_WAIT --> OVER: the next wake is the exchange's own
 *   RUNS --own wake--> WOKEN --end--> the reactor resumes: a reply, or the exchange's own resume at once */
#include "api/exchange/body_work.h"

#include <stdlib.h>

#include "api/exchange/caller.h"
#include "base/memory.h"
#include "base/thread/helpers.h"

enum { LANES = 64 };
enum job_state { JOB_RUNS, JOB_WOKEN, JOB_OVER };

struct body_work {
	struct helpers *helpers;
	/* by the caller's number: those of one lane run one after the other */
	struct helper_lane lanes[LANES];
};

struct body_job {              /* in the exchange's arena */
	struct helper_job job; /* first */
	struct exchange *exchange;
	enum next (*finish)(struct exchange *exchange);
	enum next next;
	_Atomic int state; /* of enum job_state */
};

static void run(struct helper_job *job);
static bool is_displaced(const struct exchange *exchange);
static enum next refuse(struct exchange *exchange);

struct body_work *body_work_start(unsigned threads)
{
	struct body_work *const work = memory_new(sizeof(*work));
	work->helpers = helpers_start(threads);
	return work;
}

void body_work_stop(struct body_work *work)
{
	if (work == NULL)
		return;
	helpers_stop(work->helpers);
	free(work);
}

bool body_work_is_for(const struct exchange *exchange)
{
	return exchange->context->body_work != NULL &&
		exchange->small_body.len > BODY_WORK_LEAST_BYTES;
}

enum next body_work_run(struct exchange *exchange, enum next (*finish)(struct exchange *exchange))
{
	struct body_work *const work = exchange->context->body_work;
	struct body_job *const body = arena_take(exchange->arena, sizeof(*body));
	ASSERT(exchange->body_job == NULL);
	if (body == NULL)
		return finish(exchange);
	*body = (struct body_job){.job = {.run = run}, .exchange = exchange, .finish = finish};
	exchange->body_job = body;
	helpers_submit(work->helpers, &work->lanes[caller_of(exchange).id % LANES], &body->job);
	return NEXT_WAIT;
}

bool body_work_resume(struct exchange *exchange, enum next *out_next)
{
	struct body_job *const body = exchange->body_job;
	if (body == NULL || body_job_is_over(body))
		return false;
	*out_next = body->next;
	const bool was_woken = atomic_exchange(&body->state, JOB_OVER) == JOB_WOKEN;
	return body->next != NEXT_WAIT || !was_woken;
}

bool body_job_keeps_wake(struct body_job *job)
{
	int runs = JOB_RUNS;
	return atomic_compare_exchange_strong(&job->state, &runs, JOB_WOKEN);
}

bool body_job_is_over(struct body_job *job)
{
	return atomic_load(&job->state) == JOB_OVER;
}

static void run(struct helper_job *job)
{
	struct body_job *const body = (struct body_job *)job;
	struct exchange *const exchange = body->exchange;
	body->next = is_displaced(exchange) ? refuse(exchange) : body->finish(exchange);
	exchange->ops->wake(exchange); /* nothing of it may be touched from here on */
}

/* Its connection was cut to make room: nobody hears what becomes of it. */
static bool is_displaced(const struct exchange *exchange)
{
	struct share_pool *const pool = exchange->context->shares.bodies;
	return pool != NULL && share_is_displaced(pool, &exchange->body_hold);
}

static enum next refuse(struct exchange *exchange)
{
	struct error err = {0};
	error_set(&err, ERROR_BUSY,
		"Others need the memory of this request, whose caller has more than its part. Try again.");
	return exchange_fail(exchange, &err);
}
