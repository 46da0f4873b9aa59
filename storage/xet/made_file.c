/* One queue of works for all requests: a version has one work, which all requests for it wait for.
 * Up to WORKS_AT_ONCE works run, in the order of the first request for each; made_file_work.h does
 * one. A work that ends starts the next one and answers its requests. A work that no request waits
 * for any more is dropped unless it runs already: its result may be asked for again soon. */
#include "storage/xet/made_file.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/thread/lock.h"
#include "storage/xet/made_file_work.h"

/* Not more, because the helpers must write clients' uploads too. */
enum { WORKS_AT_ONCE = 3 };

struct made_file_request {
	void (*done)(void *owner);
	void *owner;
	struct made_file_request *next; /* that waits for the same work */
	bool is_done;                   /* `done` is being called or was called */
	bool failed;
	struct error error;
};

struct queued_work {
	struct made_file_work work; /* first */
	struct queued_work *next;
	struct made_file_request *waiting;
	bool is_running;
	uint64_t bytes; /* reserved */
};

struct made_files {
	struct lock lock; /* guards all other fields */
	struct queued_work *first;
	unsigned running;
	uint64_t reserved; /* bytes, by all works that run */
	bool quiescing;
};

struct touch {
	struct change change; /* first */
	struct chunk_id file;
	int64_t expires_ms;
};

static struct queued_work **link_of(struct made_files *files, int64_t version);
static struct queued_work *queued_work_new(
	struct store *store, struct made_files *files, int64_t version);
static bool made_files_may_continue(struct made_file_work *work);
static uint64_t made_files_reserve(struct made_file_work *work, uint64_t bytes);
static void made_files_ended(struct made_file_work *work);
static struct queued_work *take_next(struct made_files *files);
static void end_request(struct made_file_request *request, const struct error *err);
static bool unlink_waiting(struct queued_work *queued, const struct made_file_request *request);
static bool needs_touch(struct store *store, const struct chunk_id *file, int64_t now_ms);
static int made_file_apply_touch(struct change *change, struct db *db, struct error *err);
static void made_file_touched(struct change *change);

struct made_files *made_files_new(void)
{
	struct made_files *const files = memory_new(sizeof(*files));
	lock_init(&files->lock, LOCK_MADE_FILES);
	return files;
}

void made_files_quiesce(struct made_files *files)
{
	lock_enter(&files->lock);
	files->quiescing = true;
	lock_leave(&files->lock);
}

void made_files_free(struct made_files *files)
{
	if (files == NULL)
		return;
	ASSERT(files->first == NULL && files->running == 0);
	lock_release(&files->lock);
	free(files);
}

struct made_file_request *made_file_request_start(
	struct store *store, int64_t version, void (*done)(void *owner), void *owner)
{
	ASSERT(version > 0 && done != NULL);
	struct made_files *const files = store_parts(store)->made_files;
	struct made_file_request *const request = memory_new(sizeof(*request));
	request->done = done;
	request->owner = owner;
	lock_enter(&files->lock);
	const bool is_refused = files->quiescing;
	struct queued_work *next = NULL;
	if (!is_refused) {
		struct queued_work **const link = link_of(files, version);
		if (*link == NULL)
			*link = queued_work_new(store, files, version);
		request->next = (*link)->waiting;
		(*link)->waiting = request;
		next = take_next(files);
	}
	lock_leave(&files->lock);
	if (next != NULL)
		made_file_work_run(&next->work);
	if (is_refused) {
		struct error err = {0};
		error_set(&err, ERROR_BUSY, "The server is stopping.");
		end_request(request, &err);
	}
	return request;
}

void made_file_request_give_up(struct store *store, struct made_file_request *request)
{
	struct made_files *const files = store_parts(store)->made_files;
	struct error err = {0};
	struct queued_work *unwanted = NULL;
	lock_enter(&files->lock);
	struct queued_work **link = &files->first;
	while (*link != NULL && !unlink_waiting(*link, request))
		link = &(*link)->next;
	const bool waited = *link != NULL;
	if (waited && (*link)->waiting == NULL && !(*link)->is_running) {
		unwanted = *link;
		*link = unwanted->next;
	}
	lock_leave(&files->lock);
	free(unwanted);
	if (!waited)
		return;
	error_set(&err, ERROR_BUSY, "The request for the records was given up.");
	end_request(request, &err);
}

int made_file_request_outcome(const struct made_file_request *request, struct error *err)
{
	ASSERT(request->is_done);
	if (!request->failed)
		return 0;
	*err = request->error;
	return -1;
}

void made_file_request_free(struct made_file_request *request)
{
	if (request == NULL)
		return;
	ASSERT(request->is_done);
	free(request);
}

void made_file_touch(struct store *store, const struct chunk_id *file)
{
	const int64_t now_ms = store_now_ms(store);
	if (!needs_touch(store, file, now_ms))
		return;
	struct touch *const touch = memory_new(sizeof(*touch));
	*touch = (struct touch){
		.change = {.apply = made_file_apply_touch, .done = made_file_touched},
		.file = *file,
		.expires_ms = now_ms + MADE_FILE_MS};
	committer_submit(store_committer(store), &touch->change);
}

/* The link to the work of this version, or the last link. */
static struct queued_work **link_of(struct made_files *files, int64_t version)
{
	lock_assert_held(&files->lock);
	struct queued_work **link = &files->first;
	while (*link != NULL && (*link)->work.sequence != version)
		link = &(*link)->next;
	return link;
}

static struct queued_work *queued_work_new(
	struct store *store, struct made_files *files, int64_t version)
{
	struct queued_work *const queued = memory_new(sizeof(*queued));
	queued->work = (struct made_file_work){.store = store,
		.sequence = version,
		.may_continue = made_files_may_continue,
		.reserve = made_files_reserve,
		.ended = made_files_ended,
		.owner = files};
	return queued;
}

static bool made_files_may_continue(struct made_file_work *work)
{
	struct made_files *const files = work->owner;
	lock_enter(&files->lock);
	const bool result = !files->quiescing;
	lock_leave(&files->lock);
	return result;
}

static uint64_t made_files_reserve(struct made_file_work *work, uint64_t bytes)
{
	struct made_files *const files = work->owner;
	struct queued_work *const queued = (struct queued_work *)work;
	lock_enter(&files->lock);
	ASSERT(queued->is_running && queued->bytes == 0);
	queued->bytes = bytes;
	files->reserved += bytes;
	const uint64_t reserved = files->reserved;
	lock_leave(&files->lock);
	return reserved;
}

static void made_files_ended(struct made_file_work *work)
{
	struct queued_work *const queued = (struct queued_work *)work;
	struct made_files *const files = work->owner;
	lock_enter(&files->lock);
	struct queued_work **const link = link_of(files, work->sequence);
	ASSERT(*link == queued && files->running >= 1 && files->reserved >= queued->bytes);
	*link = queued->next;
	files->running--;
	files->reserved -= queued->bytes;
	struct queued_work *const next = take_next(files);
	lock_leave(&files->lock);
	if (next != NULL)
		made_file_work_run(&next->work);
	for (struct made_file_request *request = queued->waiting, *after; request != NULL;
		request = after) {
		after = request->next;
		end_request(request, work->failed ? &work->error : NULL);
	}
	made_file_work_release(work);
	free(queued);
}

/* Takes the first work that may start now, if there is one. */
static struct queued_work *take_next(struct made_files *files)
{
	lock_assert_held(&files->lock);
	struct queued_work *next = files->running < WORKS_AT_ONCE ? files->first : NULL;
	while (next != NULL && next->is_running)
		next = next->next;
	if (next != NULL) {
		next->is_running = true;
		files->running++;
	}
	return next;
}

/* `err` NULL: the request has succeeded. `done` may free the request. */
static void end_request(struct made_file_request *request, const struct error *err)
{
	ASSERT(!request->is_done);
	request->failed = err != NULL;
	if (err != NULL)
		request->error = *err;
	request->is_done = true;
	request->done(request->owner);
}

/* Returns whether the request waited for this work. */
static bool unlink_waiting(struct queued_work *queued, const struct made_file_request *request)
{
	struct made_file_request **link = &queued->waiting;
	while (*link != NULL && *link != request)
		link = &(*link)->next;
	if (*link == NULL)
		return false;
	*link = request->next;
	return true;
}

static bool needs_touch(struct store *store, const struct chunk_id *file, int64_t now_ms)
{
	struct error ignored;
	struct xet_file row;
	struct db *const db = store_reader_take(store, &ignored);
	const int found = db == NULL ? -1 : xet_file_row_find(db, file, &row, &ignored);
	store_reader_give(store, db);
	return found == 1 && row.is_made && row.expires_ms - now_ms < MADE_FILE_MS / 2;
}

static int made_file_apply_touch(struct change *change, struct db *db, struct error *err)
{
	const struct touch *const touch = (const struct touch *)change;
	return xet_file_row_touch(db, &touch->file, true, touch->expires_ms, err);
}

static void made_file_touched(struct change *change)
{
	free(change); /* a failure is harmless: the file expires earlier and is made again */
}
