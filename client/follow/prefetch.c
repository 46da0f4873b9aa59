/* The thread first long-polls until the first newer step is published and fetches the path to it.
 * Then it looks once a second for a still newer one, until it is told to finish. So a follower
 * whose command takes long finds the newest path in the work folder. */
#include "client/follow/prefetch.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/thread/lock.h"
#include "client/transfer/path_fetch.h"

enum { LOOK_AGAIN_MS = 1000 };

struct prefetch {
	struct prefetch_params params;
	struct remote_options quiet; /* no retries and no notes */
	struct remote *remote;
	struct lock lock;
	struct lock_condition changed;
	/* guarded by lock: */
	bool finishing; /* look no more after the current fetch */
	bool fetched;   /* the first fetch has ended, well or not */
	pthread_t thread;
};

static void *prefetch_run(void *argument);
static void note_fetched(struct prefetch *prefetch);
static bool is_wanted(const struct prefetch *prefetch);
static int look_and_fetch(
	struct prefetch *prefetch, uint64_t wait_s, uint64_t *after, struct error *err);
static int look(struct prefetch *prefetch, struct arena *arena, uint64_t wait_s, uint64_t *after,
	struct error *err);
static int fetch_to(
	struct prefetch *prefetch, struct arena *arena, uint64_t step, struct error *err);
static bool pause_between(struct prefetch *prefetch);

struct prefetch *prefetch_start(const struct prefetch_params *params)
{
	ASSERT(params->files != NULL && params->work != NULL && params->run != NULL);
	struct prefetch *const prefetch = memory_new(sizeof(*prefetch));
	struct error ignored = {0};
	prefetch->params = *params;
	prefetch->quiet = *params->remote;
	prefetch->quiet.retries = 0;
	prefetch->quiet.output = NULL;
	prefetch->remote = remote_new(&prefetch->quiet, &ignored);
	if (prefetch->remote == NULL) {
		free(prefetch);
		return NULL;
	}
	lock_init(&prefetch->lock, LOCK_PREFETCH);
	lock_condition_init(&prefetch->changed);
	lock_thread_start(&prefetch->thread, "prefetch", prefetch_run, prefetch);
	return prefetch;
}

bool prefetch_wait(struct prefetch *prefetch, int64_t ms)
{
	lock_enter(&prefetch->lock);
	if (!prefetch->fetched && ms > 0)
		lock_wait_for(&prefetch->lock, &prefetch->changed, ms);
	const bool fetched = prefetch->fetched;
	lock_leave(&prefetch->lock);
	return fetched;
}

void prefetch_finish(struct prefetch *prefetch)
{
	ASSERT(prefetch != NULL);
	lock_enter(&prefetch->lock);
	prefetch->finishing = true;
	lock_broadcast(&prefetch->changed);
	lock_leave(&prefetch->lock);
	pthread_join(prefetch->thread, NULL);
	remote_free(prefetch->remote);
	lock_condition_release(&prefetch->changed);
	lock_release(&prefetch->lock);
	free(prefetch);
}

void prefetch_stop(struct prefetch *prefetch)
{
	if (prefetch == NULL)
		return;
	remote_cancel(prefetch->remote);
	prefetch_finish(prefetch);
}

static void *prefetch_run(void *argument)
{
	struct prefetch *const prefetch = argument;
	struct error err = {0};
	uint64_t after = prefetch->params.have;
	int result = 0;
	while (result == 0 && is_wanted(prefetch))
		result = look_and_fetch(prefetch, prefetch->params.poll_s, &after, &err);
	note_fetched(prefetch);
	while (result >= 0 && is_wanted(prefetch) && pause_between(prefetch))
		result = look_and_fetch(prefetch, 0, &after, &err);
	return NULL;
}

static void note_fetched(struct prefetch *prefetch)
{
	lock_enter(&prefetch->lock);
	prefetch->fetched = true;
	lock_broadcast(&prefetch->changed);
	lock_leave(&prefetch->lock);
}

static bool is_wanted(const struct prefetch *prefetch)
{
	const struct follow_folder *const folder = prefetch->params.folder;
	return folder == NULL || follow_folder_is_there(folder);
}

static int look_and_fetch(
	struct prefetch *prefetch, uint64_t wait_s, uint64_t *after, struct error *err)
{
	struct arena *const arena = arena_new(2 * (size_t)REMOTE_RUN_ARENA_BYTES);
	const int found = look(prefetch, arena, wait_s, after, err);
	/* back to an earlier step: the folder may still have that */
	const bool is_ahead = found > 0 && *after > prefetch->params.have;
	const int result = is_ahead && fetch_to(prefetch, arena, *after, err) != 0 ? -1 : found;
	arena_free(arena);
	return result;
}

/* 1 when there is another step to serve than *after, which becomes that step; 0 when there was none
 * in time. */
static int look(struct prefetch *prefetch, struct arena *arena, uint64_t wait_s, uint64_t *after,
	struct error *err)
{
	const struct remote_run_wait wait = {.has_after = true, .after = *after, .wait_s = wait_s};
	struct step_message newest;
	const int found = remote_run_latest(
		prefetch->remote, prefetch->params.run, &wait, arena, &newest, err);
	if (found > 0)
		*after = newest.step;
	return found;
}

static int fetch_to(
	struct prefetch *prefetch, struct arena *arena, uint64_t step, struct error *err)
{
	const struct remote_run_route route = {
		.has_have = true,
		.have = prefetch->params.have,
		.digest = prefetch->params.digest,
		.has_want = true,
		.want = step,
	};
	struct path_message path;
	uint64_t bytes;
	if (remote_run_path(prefetch->remote, prefetch->params.run, &route, arena, &path, err) != 0)
		return -1;
	const struct path_fetch fetch = {
		.transfer = {.remote = &prefetch->quiet,
			.own = prefetch->remote,
			.files = prefetch->params.files,
			.parallel = prefetch->params.parallel},
		.run = prefetch->params.run,
		.path = &path,
		.work = prefetch->params.work,
	};
	return path_fetch_all(&fetch, &bytes, err);
}

/* Pauses between two looks. False when the thread must finish. */
static bool pause_between(struct prefetch *prefetch)
{
	lock_enter(&prefetch->lock);
	if (!prefetch->finishing)
		lock_wait_for(&prefetch->lock, &prefetch->changed, LOOK_AGAIN_MS);
	const bool finishing = prefetch->finishing;
	lock_leave(&prefetch->lock);
	return !finishing;
}
