/* A queue of lanes that have work. A worker takes the first job of the first lane, and the lane
 * joins the queue again only when that job is done: this keeps the jobs of a lane in order and lets
 * lanes take turns. A job may free the owner of its lane. So a worker touches the lane after a job
 * only if another job was submitted meanwhile, which proves that the lane still lives. */
#include "base/thread/helpers.h"

#include <stddef.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/thread/lock.h"

struct helper_worker {
	struct helpers *helpers;
	pthread_t thread;
	const struct helper_lane *lane; /* the lane of the job that runs now */
	struct helper_lane *more;       /* the same lane, once another job for it is known */
};

struct helpers {
	struct lock lock;
	struct lock_condition wake;
	struct helper_lane *first; /* lanes with work that no worker has taken */
	struct helper_lane *last;
	size_t waiting; /* jobs that no worker has taken */
	bool stopping;
	unsigned threads;
	struct helper_worker *workers;
};

static void *helpers_run(void *argument);
static struct helper_job *helpers_dequeue(struct helper_worker *worker);
static void helpers_enqueue(struct helpers *helpers, struct helper_lane *lane);

struct helpers *helpers_start(unsigned threads)
{
	ASSERT(threads >= 1);
	struct helpers *const helpers = memory_new(sizeof(*helpers));
	lock_init(&helpers->lock, LOCK_HELPER_QUEUE);
	lock_condition_init(&helpers->wake);
	helpers->threads = threads;
	helpers->workers = memory_new_array(threads, sizeof(*helpers->workers));
	for (unsigned i = 0; i < threads; i++) {
		helpers->workers[i].helpers = helpers;
		lock_thread_start(
			&helpers->workers[i].thread, "helper", helpers_run, &helpers->workers[i]);
	}
	return helpers;
}

void helpers_stop(struct helpers *helpers)
{
	if (helpers == NULL)
		return;
	lock_enter(&helpers->lock);
	helpers->stopping = true;
	lock_broadcast(&helpers->wake);
	lock_leave(&helpers->lock);
	for (unsigned i = 0; i < helpers->threads; i++)
		pthread_join(helpers->workers[i].thread, NULL);
	ASSERT(helpers->first == NULL);
	lock_condition_release(&helpers->wake);
	lock_release(&helpers->lock);
	free(helpers->workers);
	free(helpers);
}

void helpers_submit(struct helpers *helpers, struct helper_lane *lane, struct helper_job *job)
{
	ASSERT(job->run != NULL);
	job->next = NULL;
	lock_enter(&helpers->lock);
	if (lane->last != NULL)
		lane->last->next = job;
	else
		lane->first = job;
	lane->last = job;
	helpers->waiting++;
	bool running = false;
	for (unsigned i = 0; i < helpers->threads; i++)
		if (helpers->workers[i].lane == lane) {
			helpers->workers[i].more = lane;
			running = true;
		}
	if (!running && !lane->scheduled)
		helpers_enqueue(helpers, lane);
	lock_leave(&helpers->lock);
}

size_t helpers_waiting(struct helpers *helpers)
{
	lock_enter(&helpers->lock);
	const size_t waiting = helpers->waiting;
	lock_leave(&helpers->lock);
	return waiting;
}

static void *helpers_run(void *argument)
{
	struct helper_worker *const worker = argument;
	struct helpers *const helpers = worker->helpers;
	lock_enter(&helpers->lock);
	for (;;) {
		while (helpers->first == NULL && !helpers->stopping)
			lock_wait(&helpers->lock, &helpers->wake);
		if (helpers->first == NULL)
			break;
		struct helper_job *const job = helpers_dequeue(worker);
		lock_leave(&helpers->lock);
		job->run(job);
		lock_enter(&helpers->lock);
		worker->lane = NULL;
		if (worker->more != NULL)
			helpers_enqueue(helpers, worker->more);
		worker->more = NULL;
	}
	lock_leave(&helpers->lock);
	return NULL;
}

static struct helper_job *helpers_dequeue(struct helper_worker *worker)
{
	struct helpers *const helpers = worker->helpers;
	struct helper_lane *const lane = helpers->first;
	ASSERT(lane != NULL && lane->first != NULL);
	helpers->first = lane->next;
	if (helpers->first == NULL)
		helpers->last = NULL;
	lane->scheduled = false;
	struct helper_job *const job = lane->first;
	lane->first = job->next;
	if (lane->first == NULL)
		lane->last = NULL;
	ASSERT(helpers->waiting > 0);
	helpers->waiting--;
	worker->lane = lane;
	worker->more = lane->first != NULL ? lane : NULL;
	return job;
}

static void helpers_enqueue(struct helpers *helpers, struct helper_lane *lane)
{
	lock_assert_held(&helpers->lock);
	ASSERT(!lane->scheduled);
	lane->next = NULL;
	lane->scheduled = true;
	if (helpers->last != NULL)
		helpers->last->next = lane;
	else
		helpers->first = lane;
	helpers->last = lane;
	lock_signal(&helpers->wake);
}
