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

static void *work(void *argument);

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
	struct parallel run = {.fn = fn, .state = state, .items = items};
	struct parallel_worker *const cast = memory_new_array(workers, sizeof(cast[0]));
	for (unsigned i = 0; i < workers; i++) {
		cast[i].run = &run;
		cast[i].number = i;
		if (i > 0)
			lock_thread_start(&cast[i].thread, "weights", work, &cast[i]);
	}
	work(&cast[0]);
	for (unsigned i = 1; i < workers; i++)
		pthread_join(cast[i].thread, NULL);
	const struct parallel_worker *first = NULL;
	for (unsigned i = 0; i < workers; i++)
		if (cast[i].failed && (first == NULL || cast[i].failed_item < first->failed_item))
			first = &cast[i];
	const int result = first != NULL ? -1 : 0;
	if (first != NULL)
		*err = first->err;
	free(cast);
	return result;
}

static void *work(void *argument)
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
