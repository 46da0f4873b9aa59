#include "storage/far/far_upload.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/net/s3/s3_upload.h"
#include "base/thread/helpers.h"
#include "base/thread/lock.h"

enum part_state { PART_NONE, PART_SENDING, PART_SENT };
struct part {
	enum part_state state;
	bool is_stale; /* its bytes have changed while it was sent */
	struct s3_etag etag;
};
struct far_uploads {
	struct s3_client *client;
	struct block_cache *cache;
	size_t part_bytes;
	struct helpers *helpers;
	struct lock lock; /* guards the uploads */
	struct lock_condition changed;
};
struct far_upload {
	struct far_uploads *uploads;
	struct block_file *file;
	char *key;
	bool is_early;
	unsigned references; /* the owner's, and one for each part on its way */
	unsigned sending;
	struct part *parts;
	size_t count;
	size_t capacity;
	char id[S3_UPLOAD_ID_BYTES];
	bool has_id;
	bool is_beginning;
	bool is_done;
	struct error failure; /* of the last part that failed */
	struct helper_job abort;
	struct helper_lane abort_lane;
};
struct part_job {
	struct helper_job job;   /* first */
	struct helper_lane lane; /* of its own, so that parts go up side by side */
	struct far_upload *upload;
	unsigned number; /* from 1 on */
	uint64_t bytes;
	struct s3_etag etag;
	struct error err;
};

static void queue_parts(struct far_upload *upload, uint64_t length, bool is_end);
static uint64_t part_length(const struct far_upload *upload, unsigned number, uint64_t length);
static void far_upload_run_part(struct helper_job *job);
static int send_part(struct part_job *job);
static int ensure_id(struct far_upload *upload, struct error *err);
static void settle_part(struct part_job *job, int result);
static int put_whole(struct far_upload *upload, uint64_t length, struct error *err);
static int read_bytes(struct far_upload *upload, uint64_t offset, uint64_t length,
	uint8_t **out_bytes, struct error *err);
static int finish_parts(struct far_upload *upload, uint64_t length, struct error *err);
static void wait_for_stale(struct far_upload *upload);
static int wait_for_parts(struct far_upload *upload, struct error *err);
static int complete(struct far_upload *upload, uint64_t length, struct error *err);
static void begin_anew(struct far_upload *upload);
static int is_there(
	struct s3_client *client, const char *key, uint64_t bytes, const struct error *why);
static void unreference(struct far_upload *upload);
static void far_upload_run_abort(struct helper_job *job);
static void destroy(struct far_upload *upload);

struct far_uploads *far_uploads_open(const struct far_uploads_options *options)
{
	struct far_uploads *const uploads = memory_new(sizeof(*uploads));
	ASSERT(options->threads > 0 && options->part_bytes > 0);
	uploads->client = options->client;
	uploads->cache = options->cache;
	uploads->part_bytes = options->part_bytes;
	lock_init(&uploads->lock, LOCK_FAR_UPLOADS);
	lock_condition_init(&uploads->changed);
	uploads->helpers = helpers_start(options->threads);
	return uploads;
}

void far_uploads_close(struct far_uploads *uploads)
{
	if (uploads == NULL)
		return;
	helpers_stop(uploads->helpers);
	lock_condition_release(&uploads->changed);
	lock_release(&uploads->lock);
	free(uploads);
}

struct far_upload *far_upload_new(
	struct far_uploads *uploads, const char *name, const char *key, bool is_early)
{
	struct far_upload *const upload = memory_new(sizeof(*upload));
	upload->uploads = uploads;
	upload->file = block_cache_file(uploads->cache, name);
	upload->key = memory_copy_text(key);
	upload->is_early = is_early;
	upload->references = 1;
	upload->abort.run = far_upload_run_abort;
	return upload;
}

void far_upload_grow(struct far_upload *upload, uint64_t length)
{
	if (upload->is_early && length > upload->uploads->part_bytes)
		queue_parts(upload, length, false);
}

/* Gives all whole parts to the threads, at the end also the last one. */
static void queue_parts(struct far_upload *upload, uint64_t length, bool is_end)
{
	struct far_uploads *const uploads = upload->uploads;
	for (unsigned number = 1; part_length(upload, number, length) > 0; number++) {
		const uint64_t bytes = part_length(upload, number, length);
		if (bytes < uploads->part_bytes && !is_end)
			return;
		lock_enter(&uploads->lock);
		if (number > upload->count) {
			upload->parts = memory_make_room(upload->parts, upload->count,
				&upload->capacity, sizeof(*upload->parts));
			upload->parts[upload->count++] = (struct part){.state = PART_NONE};
		}
		struct part *const part = &upload->parts[number - 1];
		const bool is_idle = part->state == PART_NONE;
		if (is_idle) {
			part->state = PART_SENDING;
			upload->sending++;
			upload->references++;
		}
		lock_leave(&uploads->lock);
		if (!is_idle)
			continue;
		struct part_job *const job = memory_new(sizeof(*job));
		job->job.run = far_upload_run_part;
		job->upload = upload;
		job->number = number;
		job->bytes = bytes;
		helpers_submit(uploads->helpers, &job->lane, &job->job);
	}
}

static uint64_t part_length(const struct far_upload *upload, unsigned number, uint64_t length)
{
	const uint64_t size = upload->uploads->part_bytes;
	const uint64_t start = (number - 1) * size;
	if (start >= length)
		return 0;
	return length - start < size ? length - start : size;
}

static void far_upload_run_part(struct helper_job *job)
{
	struct part_job *const part = (struct part_job *)job;
	struct far_upload *const upload = part->upload;
	settle_part(part, send_part(part));
	free(part);
	unreference(upload);
}

static int send_part(struct part_job *job)
{
	struct far_upload *const upload = job->upload;
	const uint64_t start = (uint64_t)(job->number - 1) * upload->uploads->part_bytes;
	const struct s3_upload sent = {.name = upload->key, .id = upload->id};
	uint8_t *bytes = NULL;
	if (ensure_id(upload, &job->err) != 0 ||
		read_bytes(upload, start, job->bytes, &bytes, &job->err) != 0)
		return -1;
	const int result = s3_upload_part(upload->uploads->client, &sent, job->number,
		span_of(bytes, (size_t)job->bytes), &job->etag, &job->err);
	free(bytes);
	return result;
}

/* The first part begins the upload; the others wait for that. */
static int ensure_id(struct far_upload *upload, struct error *err)
{
	struct far_uploads *const uploads = upload->uploads;
	int result = 0;
	lock_enter(&uploads->lock);
	while (upload->is_beginning)
		lock_wait(&uploads->lock, &uploads->changed);
	if (!upload->has_id) {
		upload->is_beginning = true;
		lock_leave(&uploads->lock);
		result = s3_upload_begin(uploads->client, upload->key, upload->id, err);
		lock_enter(&uploads->lock);
		upload->is_beginning = false;
		upload->has_id = result == 0;
		lock_broadcast(&uploads->changed);
	}
	lock_leave(&uploads->lock);
	return result;
}

static int read_bytes(struct far_upload *upload, uint64_t offset, uint64_t length,
	uint8_t **out_bytes, struct error *err)
{
	uint8_t *const bytes = memory_grow(NULL, (size_t)length, 1);
	const struct iovec part = {.iov_base = bytes, .iov_len = (size_t)length};
	if (block_file_read(upload->file, &part, 1, offset, err) != 0) {
		free(bytes);
		return -1;
	}
	*out_bytes = bytes;
	return 0;
}

static void settle_part(struct part_job *job, int result)
{
	struct far_upload *const upload = job->upload;
	struct far_uploads *const uploads = upload->uploads;
	lock_enter(&uploads->lock);
	struct part *const part = &upload->parts[job->number - 1];
	const bool is_sent = result == 0 && !part->is_stale;
	part->state = is_sent ? PART_SENT : PART_NONE;
	part->is_stale = false;
	part->etag = job->etag;
	if (result != 0)
		upload->failure = job->err;
	upload->sending--;
	lock_broadcast(&uploads->changed);
	lock_leave(&uploads->lock);
}

void far_upload_cut(struct far_upload *upload, uint64_t length)
{
	struct far_uploads *const uploads = upload->uploads;
	lock_enter(&uploads->lock);
	for (size_t i = (size_t)(length / uploads->part_bytes); i < upload->count; i++) {
		if (upload->parts[i].state == PART_SENDING)
			upload->parts[i].is_stale = true;
		else
			upload->parts[i].state = PART_NONE;
	}
	lock_leave(&uploads->lock);
}

int far_upload_finish(struct far_upload *upload, uint64_t length, struct error *err)
{
	if (upload->is_done)
		return 0;
	const int result = length <= upload->uploads->part_bytes && upload->count == 0
		? put_whole(upload, length, err)
		: finish_parts(upload, length, err);
	upload->is_done = result == 0;
	return result;
}

static int put_whole(struct far_upload *upload, uint64_t length, struct error *err)
{
	uint8_t *bytes = NULL;
	if (read_bytes(upload, 0, length, &bytes, err) != 0)
		return -1;
	block_file_sent(upload->file);
	const int result = far_upload_put(
		upload->uploads->client, upload->key, span_of(bytes, (size_t)length), err);
	free(bytes);
	return result;
}

int far_upload_put(struct s3_client *client, const char *key, struct span bytes, struct error *err)
{
	struct error why;
	if (s3_client_put(client, key, bytes, &why) == 0 || is_there(client, key, bytes.len, &why))
		return 0;
	*err = why;
	return -1;
}

/* Whether a request that had no answer has done its work all the same. */
static int is_there(
	struct s3_client *client, const char *key, uint64_t bytes, const struct error *why)
{
	struct error ignored;
	uint64_t found;
	return (why->kind == ERROR_BUSY || why->kind == ERROR_UPSTREAM) &&
		s3_client_head(client, key, &found, &ignored) == 0 && found == bytes;
}

static int finish_parts(struct far_upload *upload, uint64_t length, struct error *err)
{
	wait_for_stale(upload);
	queue_parts(upload, length, true);
	if (wait_for_parts(upload, err) != 0)
		return -1;
	block_file_sent(upload->file);
	return complete(upload, length, err);
}

/* Parts that have changed since they were sent go up again. */
static void wait_for_stale(struct far_upload *upload)
{
	struct far_uploads *const uploads = upload->uploads;
	lock_enter(&uploads->lock);
	for (size_t i = 0; i < upload->count; i++)
		while (upload->parts[i].is_stale)
			lock_wait(&uploads->lock, &uploads->changed);
	lock_leave(&uploads->lock);
}

/* Parts that failed are sent by the next call. */
static int wait_for_parts(struct far_upload *upload, struct error *err)
{
	struct far_uploads *const uploads = upload->uploads;
	bool is_whole = true;
	lock_enter(&uploads->lock);
	while (upload->sending > 0)
		lock_wait(&uploads->lock, &uploads->changed);
	for (size_t i = 0; i < upload->count; i++)
		is_whole = is_whole && upload->parts[i].state == PART_SENT;
	if (!is_whole)
		*err = upload->failure;
	lock_leave(&uploads->lock);
	if (!is_whole && err->kind == ERROR_NOT_FOUND) { /* the store has ended the upload */
		begin_anew(upload);
		err->kind = ERROR_BUSY;
	}
	return is_whole ? 0 : -1;
}

static int complete(struct far_upload *upload, uint64_t length, struct error *err)
{
	struct s3_client *const client = upload->uploads->client;
	const struct s3_upload sent = {.name = upload->key, .id = upload->id};
	struct s3_etag *const etags = memory_new_array(upload->count, sizeof(*etags));
	struct error why;
	for (size_t i = 0; i < upload->count; i++)
		etags[i] = upload->parts[i].etag;
	int result =
		s3_upload_complete(client, &sent, etags, (unsigned)upload->count, length, &why);
	free(etags);
	if (result != 0 && is_there(client, upload->key, length, &why))
		result = 0;
	if (result == 0)
		return 0;
	*err = why;
	if (err->kind == ERROR_NOT_FOUND || err->kind == ERROR_CORRUPT) {
		begin_anew(upload);
		err->kind = ERROR_BUSY;
	}
	return -1;
}

/* The next call sends all parts again, to another upload. */
static void begin_anew(struct far_upload *upload)
{
	upload->has_id = false;
	for (size_t i = 0; i < upload->count; i++)
		upload->parts[i].state = PART_NONE;
}

void far_upload_free(struct far_upload *upload)
{
	if (upload != NULL)
		unreference(upload);
}

static void unreference(struct far_upload *upload)
{
	struct far_uploads *const uploads = upload->uploads;
	lock_enter(&uploads->lock);
	const bool is_last = --upload->references == 0;
	lock_leave(&uploads->lock);
	if (!is_last)
		return;
	if (upload->has_id && !upload->is_done)
		helpers_submit(uploads->helpers, &upload->abort_lane, &upload->abort);
	else
		destroy(upload);
}

/* What stays at the store is aborted by the sweep of later days. */
static void far_upload_run_abort(struct helper_job *job)
{
	struct far_upload *const upload =
		(struct far_upload *)((char *)job - offsetof(struct far_upload, abort));
	const struct s3_upload sent = {.name = upload->key, .id = upload->id};
	struct error ignored;
	(void)s3_upload_abort(upload->uploads->client, &sent, &ignored);
	destroy(upload);
}

static void destroy(struct far_upload *upload)
{
	block_file_close(upload->file);
	free(upload->parts);
	free(upload->key);
	free(upload);
}
