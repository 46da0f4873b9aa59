/* Memory is two buffers: one fills while a helper writes the other to the file, so a body costs at
 * most two pieces, and a sender that is faster than the disk waits. The owner and each job have a
 * reference. The one that gives up the last reference destroys the spool, on a helper when there is
 * a file. */
#include "storage/objects/body_spool.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/thread/lock.h"
#include "storage/core/store.h"
#include "storage/objects/scratch.h"
#include "weights/model/mapped_file.h"

struct body_spool {
	struct store *store;
	struct helper_lane lane;
	struct helper_job write_job;
	struct helper_job end_job;
	struct body_spool_params params;
	void (*ready)(void *owner);
	struct buffer filling;
	uint64_t size;   /* of all bytes taken */
	bool is_in_file; /* or a job is about to write it */
	/* used by the lane's jobs only */
	struct buffer writing;
	struct scratch *scratch;
	char *path;
	int fd;
	uint64_t written;
	struct span mapped;
	/* guarded by `lock` */
	struct lock lock;
	unsigned references;
	bool is_writing;
	bool wants_room;
	bool abandoned;
	bool failed;
	struct error error;
};

static int outcome(struct body_spool *spool, struct error *err);
static bool hand_over(struct body_spool *spool);
static void body_spool_run_write(struct helper_job *job);
static int write_piece(struct body_spool *spool, struct span piece, struct error *err);
static int open_file(struct body_spool *spool, struct error *err);
static void keep_failure(struct body_spool *spool, const struct error *err);
static bool give_reference(struct body_spool *spool);
static void destroy(struct body_spool *spool);
static void body_spool_run_end(struct helper_job *job);
static int end_file(struct body_spool *spool, struct error *err);
static void body_spool_run_destroy(struct helper_job *job);

struct body_spool *body_spool_new(struct store *store, const struct body_spool_params *params)
{
	struct body_spool *const spool = memory_new(sizeof(*spool));
	ASSERT(params->what != NULL && params->room != NULL);
	spool->store = store;
	spool->params = *params;
	spool->fd = -1;
	spool->references = 1;
	lock_init(&spool->lock, LOCK_INGEST);
	buffer_init(&spool->filling, params->bytes_max);
	buffer_init(&spool->writing, params->bytes_max);
	return spool;
}

enum sink_result body_spool_write(struct body_spool *spool, struct span bytes, struct error *err)
{
	ASSERT(spool->ready == NULL && spool->size <= spool->params.bytes_max);
	if (outcome(spool, err) != 0)
		return SINK_FAILED;
	if (bytes.len > spool->params.bytes_max - spool->size) {
		error_set(err, ERROR_TOO_LARGE, "%s may have at most %zu bytes.",
			spool->params.what, spool->params.bytes_max);
		return SINK_FAILED;
	}
	if (spool->filling.len > 0 && spool->filling.len + bytes.len > BODY_SPOOL_MEMORY_BYTES &&
		!hand_over(spool))
		return SINK_WAIT;
	buffer_add_span(&spool->filling, bytes);
	spool->size += bytes.len;
	return SINK_TAKEN;
}

void body_spool_finish(struct body_spool *spool, void (*ready)(void *owner))
{
	ASSERT(ready != NULL && spool->ready == NULL);
	lock_enter(&spool->lock);
	spool->references++;
	lock_leave(&spool->lock);
	spool->ready = ready;
	spool->end_job.run = body_spool_run_end;
	helpers_submit(store_helpers(spool->store), &spool->lane, &spool->end_job);
}

bool body_spool_is_large(const struct body_spool *spool)
{
	return spool->size > BODY_SPOOL_MEMORY_BYTES;
}

int body_spool_bytes(struct body_spool *spool, struct span *out, struct error *err)
{
	if (outcome(spool, err) != 0)
		return -1;
	*out = spool->is_in_file ? spool->mapped : buffer_span(&spool->filling);
	return 0;
}

void body_spool_free(struct body_spool *spool)
{
	if (spool == NULL)
		return;
	lock_enter(&spool->lock);
	spool->abandoned = true;
	lock_leave(&spool->lock);
	if (!give_reference(spool))
		return;
	if (!spool->is_in_file) {
		destroy(spool);
		return;
	}
	spool->end_job.run = body_spool_run_destroy;
	helpers_submit(store_helpers(spool->store), &spool->lane, &spool->end_job);
}

static int outcome(struct body_spool *spool, struct error *err)
{
	lock_enter(&spool->lock);
	const bool failed = spool->failed;
	if (failed)
		*err = spool->error;
	lock_leave(&spool->lock);
	return failed ? -1 : 0;
}

/* Gives the filled buffer to a helper; false while the piece before is being written. */
static bool hand_over(struct body_spool *spool)
{
	lock_enter(&spool->lock);
	const bool is_busy = spool->is_writing;
	spool->wants_room = is_busy;
	if (!is_busy) {
		spool->is_writing = true;
		spool->references++;
	}
	lock_leave(&spool->lock);
	if (is_busy)
		return false;
	const struct buffer written = spool->writing;
	spool->writing = spool->filling;
	spool->filling = written;
	buffer_reset(&spool->filling);
	spool->is_in_file = true;
	spool->write_job.run = body_spool_run_write;
	helpers_submit(store_helpers(spool->store), &spool->lane, &spool->write_job);
	return true;
}

/* Calls `room` under the lock. body_spool_free takes the lock, so `room` never runs after it. */
static void body_spool_run_write(struct helper_job *job)
{
	struct body_spool *const spool =
		(struct body_spool *)((uint8_t *)job - offsetof(struct body_spool, write_job));
	struct error err = {0};
	const int result = write_piece(spool, buffer_span(&spool->writing), &err);
	buffer_release(&spool->writing); /* so that a slow body does not keep two */
	buffer_init(&spool->writing, spool->params.bytes_max);
	lock_enter(&spool->lock);
	spool->is_writing = false;
	if (result != 0)
		keep_failure(spool, &err);
	if (spool->wants_room && !spool->abandoned)
		spool->params.room(spool->params.owner);
	spool->wants_room = false;
	lock_leave(&spool->lock);
	if (give_reference(spool))
		destroy(spool);
}

static int write_piece(struct body_spool *spool, struct span piece, struct error *err)
{
	if (spool->scratch == NULL && open_file(spool, err) != 0)
		return -1;
	if (file_write_at(store_files(spool->store), spool->fd, piece, (off_t)spool->written,
		    spool->path, err) != 0)
		return -1;
	spool->written += piece.len;
	return 0;
}

static int open_file(struct body_spool *spool, struct error *err)
{
	static const char name[] = "/body";
	const struct file_ops *const files = store_files(spool->store);
	spool->scratch = scratch_open(spool->store, err);
	if (spool->scratch == NULL)
		return -1;
	const char *const folder = scratch_path(spool->scratch);
	spool->path = memory_new(strlen(folder) + sizeof(name));
	snprintf(spool->path, strlen(folder) + sizeof(name), "%s%s", folder, name);
	spool->fd = files->open(files, spool->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	return spool->fd < 0 ? error_set_errno(err, "%s: cannot be made", spool->path) : 0;
}

static void keep_failure(struct body_spool *spool, const struct error *err)
{
	if (spool->failed)
		return;
	spool->failed = true;
	spool->error = *err;
}

/* Gives up a reference; true when it was the last one. */
static bool give_reference(struct body_spool *spool)
{
	lock_enter(&spool->lock);
	ASSERT(spool->references > 0);
	const bool is_last = --spool->references == 0;
	lock_leave(&spool->lock);
	return is_last;
}

static void destroy(struct body_spool *spool)
{
	mapped_file_close(spool->mapped);
	if (spool->fd >= 0)
		close(spool->fd);
	free(spool->path);
	scratch_close(spool->scratch);
	buffer_release(&spool->filling);
	buffer_release(&spool->writing);
	lock_release(&spool->lock);
	free(spool);
}

static void body_spool_run_end(struct helper_job *job)
{
	struct body_spool *const spool =
		(struct body_spool *)((uint8_t *)job - offsetof(struct body_spool, end_job));
	struct error err = {0};
	if (spool->is_in_file && end_file(spool, &err) != 0) {
		lock_enter(&spool->lock);
		keep_failure(spool, &err);
		lock_leave(&spool->lock);
	}
	spool->ready(spool->params.owner);
	if (give_reference(spool))
		destroy(spool);
}

static int end_file(struct body_spool *spool, struct error *err)
{
	if (outcome(spool, err) != 0 || write_piece(spool, buffer_span(&spool->filling), err) != 0)
		return -1;
	return mapped_file_open(spool->path, &spool->mapped, err);
}

static void body_spool_run_destroy(struct helper_job *job)
{
	destroy((struct body_spool *)((uint8_t *)job - offsetof(struct body_spool, end_job)));
}
