/* Threads add to an atomic counter. The thread that moves next_show_ms on by compare-and-swap shows
 * the facts: so no thread waits for another, and one shows them in each interval. */
#include "client/work/progress.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "client/work/stop.h"

struct progress {
	struct work_watch watch; /* must be first: progress_step casts it back */
	const struct stop *stop; /* asked by progress_step */
	const struct progress_sink *sink;
	char *what;
	uint64_t total;
	int64_t started_ms;
	_Atomic uint64_t done;
	_Atomic int64_t next_show_ms; /* the thread that moves it on shows */
};

static void show(const struct progress *progress, uint64_t done, int64_t now);
static int progress_step(struct work_watch *watch, uint64_t bytes, struct error *err);

struct progress *progress_new(
	const char *what, uint64_t total_bytes, const struct progress_sink *sink)
{
	ASSERT(what != NULL);
	struct progress *const progress = memory_new(sizeof(*progress));
	progress->sink = sink;
	progress->what = memory_copy_text(what);
	progress->total = total_bytes;
	progress->started_ms = clock_monotonic_ms();
	if (sink != NULL)
		atomic_store(&progress->next_show_ms, progress->started_ms + sink->pause_ms);
	return progress;
}

void progress_add(struct progress *progress, uint64_t bytes)
{
	if (progress == NULL)
		return;
	const uint64_t done = atomic_fetch_add(&progress->done, bytes) + bytes;
	if (progress->sink == NULL)
		return;
	const int64_t now = clock_monotonic_ms();
	int64_t next = atomic_load(&progress->next_show_ms);
	if (now >= next &&
		atomic_compare_exchange_strong(
			&progress->next_show_ms, &next, now + progress->sink->pause_ms))
		show(progress, done, now);
}

void progress_take_back(struct progress *progress, uint64_t bytes)
{
	if (progress != NULL)
		atomic_fetch_sub(&progress->done, bytes);
}

struct work_watch *progress_watch(struct progress *progress, const struct stop *stop)
{
	ASSERT(progress != NULL);
	progress->watch.step = progress_step;
	progress->stop = stop;
	return &progress->watch;
}

void progress_free(struct progress *progress)
{
	if (progress == NULL)
		return;
	if (progress->sink != NULL && progress->sink->end != NULL)
		progress->sink->end(progress->sink->owner);
	free(progress->what);
	free(progress);
}

static void show(const struct progress *progress, uint64_t done, int64_t now)
{
	const struct progress_facts facts = {
		.what = progress->what,
		.done = done,
		.total = progress->total,
		.elapsed_ms = now - progress->started_ms,
	};
	progress->sink->show(progress->sink->owner, &facts);
}

static int progress_step(struct work_watch *watch, uint64_t bytes, struct error *err)
{
	struct progress *const progress = (struct progress *)watch;
	progress_add(progress, bytes);
	return stop_check(progress->stop, err);
}
