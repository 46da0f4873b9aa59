/* While `finish` runs on the pool, the reactor waits only for its end. Work that `finish` started
 * may wake the exchange before that end; such a wake is kept. States of a job:
 *
 *   RUNS --end--> OVER: the reactor replies, or the handler waits (NEXT_WAIT) and the next wake is for it
 *   RUNS --wake by started work--> WOKEN --end--> OVER: the reactor replies, or calls the handler's resume at once */
#include "api/exchange/body_work.h"

#include <stdlib.h>

#include "api/exchange/caller.h"
#include "base/memory.h"
#include "base/thread/helpers.h"

enum { LANES = 64 };
enum job_state { JOB_RUNS, JOB_WOKEN, JOB_OVER };

struct body_work {
	struct helpers *helpers;
	/* chosen by the caller's number; the jobs of one lane run one after the other */
	struct helper_lane lanes[LANES];
};

struct body_job {              /* in the exchange's arena */
	struct helper_job job; /* first */
	struct exchange *exchange;
	enum next (*finish)(struct exchange *exchange);
	enum next next;
	_Atomic int state; /* of enum job_state */
};

static void body_work_run_job(struct helper_job *job);
static bool is_displaced(const struct exchange *exchange);
static enum next refuse(struct exchange *exchange);

struct body_work *body_work_start(unsigned threads)
{
	struct body_work *const work = memory_new(sizeof(*work));
	ASSERT(threads > 0);
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

size_t body_work_waiting(struct body_work *work)
{
	return work != NULL ? helpers_waiting(work->helpers) : 0;
}

bool body_work_is_for(const struct exchange *exchange)
{
	return exchange->context->body_work != NULL &&
		exchange->small_body.len > BODY_WORK_LEAST_BYTES;
}

enum next body_work_run(struct exchange *exchange, enum next (*finish)(struct exchange *exchange))
{
	struct body_work *const work = exchange->context->body_work;
	ASSERT(work != NULL);
	struct body_job *const body = arena_take(exchange->arena, sizeof(*body));
	ASSERT(exchange->body_job == NULL);
	if (body == NULL)
		return finish(exchange);
	*body = (struct body_job){
		.job = {.run = body_work_run_job}, .exchange = exchange, .finish = finish};
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

static void body_work_run_job(struct helper_job *job)
{
	struct body_job *const body = (struct body_job *)job;
	struct exchange *const exchange = body->exchange;
	body->next = is_displaced(exchange) ? refuse(exchange) : body->finish(exchange);
	exchange->ops->wake(exchange); /* The exchange and the job may be gone from here on. */
}

/* Whether its connection was cut to make room, so that nobody receives the reply. */
static bool is_displaced(const struct exchange *exchange)
{
	struct share_pool *const pool = exchange->context->shares.bodies;
	return pool != NULL && share_is_displaced(pool, &exchange->body_hold);
}

static enum next refuse(struct exchange *exchange)
{
	struct error err = {0};
	error_set(&err, ERROR_BUSY,
		"The caller uses more than its share of the memory for request bodies, and other callers need it. Try again.");
	return exchange_fail(exchange, &err);
}
