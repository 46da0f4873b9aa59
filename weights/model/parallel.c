/* Workers take item numbers from one counter until it passes the last item or one of them fails.
 * Each worker keeps its own first error. Items begin in rising order and each that began ends, so
 * the lowest of these errors is that of the lowest failed item. */
#include "weights/model/parallel.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/thread/lock.h"

enum { WORKERS_MAX = 64 };

struct parallel {
	parallel_fn *fn;
	void *state;
	size_t items;
	_Atomic size_t next;
	_Atomic bool failed;
};

struct parallel_worker {
	struct parallel *run;
	unsigned number;
	pthread_t thread;
	bool failed;
	size_t failed_item;
	struct error err;
};

static void *parallel_work(void *argument);

unsigned parallel_workers(unsigned wanted, size_t items)
{
	const long cores = sysconf(_SC_NPROCESSORS_ONLN);
	size_t workers = wanted > 0 ? wanted : (size_t)(cores > 0 ? cores : 1);
	if (workers > WORKERS_MAX)
		workers = WORKERS_MAX;
	if (workers > items)
		workers = items;
	return workers > 0 ? (unsigned)workers : 1;
}

int parallel_run(unsigned workers, size_t items, parallel_fn *fn, void *state, struct error *err)
{
	ASSERT(workers >= 1 && workers <= WORKERS_MAX);
	ASSERT(fn != NULL);
	struct parallel run = {.fn = fn, .state = state, .items = items};
	struct parallel_worker *const worker = memory_new_array(workers, sizeof(worker[0]));
	for (unsigned i = 0; i < workers; i++) {
		worker[i].run = &run;
		worker[i].number = i;
		if (i > 0)
			lock_thread_start(&worker[i].thread, "weights", parallel_work, &worker[i]);
	}
	parallel_work(&worker[0]); /* this thread is the first worker */
	for (unsigned i = 1; i < workers; i++)
		pthread_join(worker[i].thread, NULL);
	const struct parallel_worker *first = NULL;
	for (unsigned i = 0; i < workers; i++)
		if (worker[i].failed &&
			(first == NULL || worker[i].failed_item < first->failed_item))
			first = &worker[i];
	const int result = first != NULL ? -1 : 0;
	if (first != NULL)
		*err = first->err;
	free(worker);
	return result;
}

static void *parallel_work(void *argument)
{
	struct parallel_worker *const worker = argument;
	struct parallel *const run = worker->run;
	while (!atomic_load(&run->failed)) {
		const size_t item = atomic_fetch_add(&run->next, 1);
		if (item >= run->items)
			break;
		if (run->fn(run->state, item, worker->number, &worker->err) != 0) {
			worker->failed = true;
			worker->failed_item = item;
			atomic_store(&run->failed, true);
		}
	}
	return NULL;
}
