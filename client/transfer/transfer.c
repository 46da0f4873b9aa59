/* Downloads: threads take parts of any file under a lock, and write the bytes straight from the
 * connection to their place in the part file. The thread that finishes the last part of a file
 * proves and renames it, or starts it over once if its digest is wrong. A file of one part has no
 * journal, because a new request for the part is as good as resuming. */
#include "client/transfer/transfer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/thread/lock.h"
#include "client/local/file_chunks.h"
#include "client/local/folder_files.h"
#include "client/local/part_file.h"
#include "client/local/part_journal.h"
#include "client/remote/remote_object.h"
#include "client/transfer/pool.h"

enum { READ_BLOCK_BYTES = 1024 * 1024, CONNECTION_WORTH_BYTES = 4 * 1024 * 1024 };

struct file {
	const struct transfer_download *what;
	struct part_plan plan;
	char identity[192]; /* of the plan */
	int fd;
	struct part_journal *journal; /* NULL for one part */
	size_t parts;                 /* 0: the file exists already */
	bool *taken;                  /* for each part; guarded by the lock, as all below */
	size_t next;                  /* all parts before it are taken */
	size_t done;                  /* complete parts */
	bool restarted;
};

struct download_job {
	const struct transfer_options *options;
	struct lock lock;
	struct file *files;
	size_t count;
};

struct part_sink {
	struct body_sink sink;
	const struct file *file;
	uint64_t offset;
	struct xxh3_stream *checksum;
	const struct transfer_options *options;
};

struct upload_job {
	const struct transfer_options *options;
	const struct transfer_upload *files;
	size_t count;
	transfer_done_fn *done;
	void *owner;
	struct lock lock;
	size_t next; /* guarded by lock */
};

static int prepare_all(struct download_job *job, const struct transfer_download *files,
	size_t *out_missing, struct error *err);
static int file_prepare(struct file *file, const struct transfer_download *what,
	const struct transfer_options *options, struct error *err);
static bool is_there_already(
	const struct transfer_download *what, const struct remote_options *remote);
static bool has_hash(const struct transfer_download *what, const struct remote_options *remote);
static int open_journal(struct file *file, const struct file_ops *files, struct error *err);
static void count_complete_parts(struct file *file, struct progress *progress);
static int settle(struct download_job *job, struct file *file, struct error *err);
static int file_prove(struct file *file, const struct transfer_options *options, struct error *err);
static void restart(struct download_job *job, struct file *file);
static int run_pool(const struct transfer_options *options, size_t pieces, uint64_t bytes,
	pool_piece_fn *piece, void *job, struct error *err);
static int transfer_download_piece(void *argument, struct remote *remote, struct error *err);
static struct file *take_part(struct download_job *job, size_t *out_part);
static int fetch_part(const struct file *file, size_t part, const struct transfer_options *options,
	struct remote *remote, uint64_t *out_checksum, struct error *err);
static enum sink_result transfer_sink_write(
	struct body_sink *sink, struct span bytes, struct error *err);
static int book_part(struct download_job *job, struct file *file, size_t part, uint64_t checksum,
	bool *out_last, struct error *err);
static int sync_names(const struct transfer_options *options, const struct transfer_download *files,
	size_t count, struct error *err);
static void file_release(struct file *file);
static int transfer_upload_piece(void *argument, struct remote *remote, struct error *err);
static int upload_file(const struct upload_job *job, const struct transfer_upload *file,
	struct remote *remote, struct error *err);

int transfer_file_digest(const char *path, struct digest128 *out, struct error *err)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return error_set_errno(err, "opening %s", path);
	uint8_t *const block = memory_new(READ_BLOCK_BYTES);
	struct xxh3_stream *const stream = xxh3_stream_new();
	ssize_t len;
	while ((len = read(fd, block, READ_BLOCK_BYTES)) > 0 || (len < 0 && errno == EINTR))
		if (len > 0)
			xxh3_stream_add(stream, span_of(block, (size_t)len));
	const int result = len == 0 ? 0 : error_set_errno(err, "reading %s", path);
	*out = xxh3_stream_result(stream);
	xxh3_stream_free(stream);
	free(block);
	close(fd);
	return result;
}

int transfer_download(const struct transfer_options *options, const struct transfer_download *files,
	size_t count, struct error *err)
{
	struct download_job job = {.options = options,
		.count = count,
		.files = memory_new_array(count + 1, sizeof(*job.files))};
	lock_init(&job.lock, LOCK_TRANSFER_PARTS);
	uint64_t bytes = 0;
	for (size_t i = 0; i < count; i++) {
		job.files[i].fd = -1;
		bytes += files[i].size;
	}
	size_t missing = 0;
	int result = prepare_all(&job, files, &missing, err);
	if (result == 0 && missing > 0)
		result = run_pool(options, missing, bytes, transfer_download_piece, &job, err);
	/* Also after a failure, for the files that are complete. */
	struct error ignored = {0};
	if (sync_names(options, files, count, result == 0 ? err : &ignored) != 0)
		result = -1;
	for (size_t i = 0; i < count; i++)
		file_release(&job.files[i]);
	lock_release(&job.lock);
	free(job.files);
	return result;
}

int transfer_upload(const struct transfer_options *options, const struct transfer_upload *files,
	size_t count, transfer_done_fn *done, void *owner, struct error *err)
{
	struct upload_job job = {
		.options = options, .files = files, .count = count, .done = done, .owner = owner};
	lock_init(&job.lock, LOCK_TRANSFER_PARTS);
	uint64_t bytes = 0;
	for (size_t i = 0; i < count; i++)
		bytes += files[i].size;
	const int result =
		count == 0 ? 0 : run_pool(options, count, bytes, transfer_upload_piece, &job, err);
	lock_release(&job.lock);
	return result;
}

/* Opens all part files and settles those that an earlier call left complete. *out_missing is the
 * number of parts to download. */
static int prepare_all(struct download_job *job, const struct transfer_download *files,
	size_t *out_missing, struct error *err)
{
	for (size_t i = 0; i < job->count; i++) {
		struct file *const file = &job->files[i];
		if (file_prepare(file, &files[i], job->options, err) != 0)
			return -1;
		if (file->parts > 0 && file->done == file->parts && settle(job, file, err) != 0)
			return -1;
		*out_missing += file->parts - file->done;
	}
	return 0;
}

static int file_prepare(struct file *file, const struct transfer_download *what,
	const struct transfer_options *options, struct error *err)
{
	char digest[DIGEST128_TEXT_BYTES] = "none";
	if (what->has_digest)
		digest128_format(&what->digest, digest);
	snprintf(file->identity, sizeof(file->identity), "%s",
		what->has_digest || what->etag == NULL ? digest : what->etag);
	file->what = what;
	file->plan = (struct part_plan){
		.size = what->size,
		.part_bytes = options->part_bytes != 0 ? options->part_bytes : TRANSFER_PART_BYTES,
		.identity = span_text(file->identity),
	};
	if (is_there_already(what, options->remote)) {
		progress_add(options->progress, what->size);
		return 0;
	}
	file->fd = part_file_open(options->files, what->part_path, what->size, err);
	if (file->fd < 0)
		return -1;
	if (part_plan_count(&file->plan) > 1 && open_journal(file, options->files, err) != 0)
		return -1;
	file->parts = part_plan_count(&file->plan);
	file->taken = memory_new_array(file->parts, sizeof(*file->taken));
	count_complete_parts(file, options->progress);
	return 0;
}

static bool is_there_already(
	const struct transfer_download *what, const struct remote_options *remote)
{
	struct error ignored = {0};
	struct digest128 digest;
	uint64_t size;
	if (!file_exists(what->path) || file_size(what->path, &size, &ignored) != 0 ||
		size != what->size)
		return false;
	if (!what->has_digest)
		return has_hash(what, remote);
	return transfer_file_digest(what->path, &digest, &ignored) == 0 &&
		digest128_equal(&digest, &what->digest);
}

static bool has_hash(const struct transfer_download *what, const struct remote_options *remote)
{
	struct error ignored = {0};
	struct file_chunks chunks;
	if (!what->has_hash || file_chunks_read(what->path, remote->stop, &chunks, &ignored) != 0)
		return false;
	const bool same = chunk_id_equal(&chunks.hash, &what->hash);
	file_chunks_release(&chunks);
	return same;
}

static int open_journal(struct file *file, const struct file_ops *files, struct error *err)
{
	char path[4096];
	if (snprintf(path, sizeof(path), "%s.journal", file->what->part_path) >= (int)sizeof(path))
		return error_set(
			err, ERROR_INVALID, "the path %s is too long", file->what->part_path);
	file->journal = part_journal_open(files, path, &file->plan, err);
	if (file->journal == NULL ||
		part_journal_verify(file->journal, file->fd, file->what->part_path, err) != 0)
		return -1;
	return 0;
}

/* Marks and counts the parts that the journal proves. */
static void count_complete_parts(struct file *file, struct progress *progress)
{
	for (size_t i = 0; i < file->parts; i++) {
		file->taken[i] = file->journal != NULL && part_journal_has(file->journal, i);
		if (!file->taken[i])
			continue;
		file->done++;
		progress_add(progress, part_plan_bytes(&file->plan, i));
	}
}

/* Puts a file with all its parts in place, or starts it over. */
static int settle(struct download_job *job, struct file *file, struct error *err)
{
	const int again = file_prove(file, job->options, err);
	if (again > 0)
		restart(job, file);
	return again < 0 ? -1 : 0;
}

/* Proves a file with all its parts. 1 when it must be downloaded again, 0 when it is in place. */
static int file_prove(struct file *file, const struct transfer_options *options, struct error *err)
{
	const struct transfer_download *const what = file->what;
	struct digest128 digest;
	if (what->has_digest) {
		if (transfer_file_digest(what->part_path, &digest, err) != 0)
			return -1;
		if (!digest128_equal(&digest, &what->digest)) {
			char wanted[DIGEST128_TEXT_BYTES];
			char got[DIGEST128_TEXT_BYTES];
			digest128_format(&what->digest, wanted);
			digest128_format(&digest, got);
			if (file->journal != NULL && part_journal_restart(file->journal, err) != 0)
				return -1;
			if (file->restarted)
				return error_set(err, ERROR_DIGEST_MISMATCH,
					"%.*s arrived twice with the digest %s instead of %s",
					http_shown(what->target), what->target, got, wanted);
			progress_take_back(options->progress, what->size);
			return 1;
		}
	}
	return part_file_finish(options->files, file->fd, what->part_path, what->path, err);
}

static void restart(struct download_job *job, struct file *file)
{
	lock_enter(&job->lock);
	ASSERT(!file->restarted && file->done == file->parts);
	memset(file->taken, 0, file->parts * sizeof(*file->taken));
	file->next = 0;
	file->done = 0;
	file->restarted = true;
	lock_leave(&job->lock);
}

/* Uses as many connections as have enough to do. */
static int run_pool(const struct transfer_options *options, size_t pieces, uint64_t bytes,
	pool_piece_fn *piece, void *job, struct error *err)
{
	const uint64_t most = options->parallel != 0 ? options->parallel : TRANSFER_PARALLEL;
	const uint64_t worth = bytes / CONNECTION_WORTH_BYTES + 1;
	uint64_t threads = pieces < most ? pieces : most;
	if (worth < threads)
		threads = worth;
	const struct pool_params params = {.remote = options->remote,
		.own = options->own,
		.threads = (unsigned)threads,
		.piece = piece,
		.job = job};
	return pool_run(&params, err);
}

static int transfer_download_piece(void *argument, struct remote *remote, struct error *err)
{
	struct download_job *const job = argument;
	size_t part = 0;
	struct file *const file = take_part(job, &part);
	if (file == NULL)
		return 0;
	uint64_t checksum;
	bool last;
	if (fetch_part(file, part, job->options, remote, &checksum, err) != 0 ||
		book_part(job, file, part, checksum, &last, err) != 0)
		return -1;
	if (last && settle(job, file, err) != 0)
		return -1;
	return 1;
}

/* Takes a free part of any file; NULL when there is none. */
static struct file *take_part(struct download_job *job, size_t *out_part)
{
	struct file *taken = NULL;
	lock_enter(&job->lock);
	for (size_t i = 0; i < job->count && taken == NULL; i++) {
		struct file *const file = &job->files[i];
		while (file->next < file->parts && file->taken[file->next])
			file->next++;
		if (file->next == file->parts)
			continue;
		ASSERT(file->next < file->parts);
		*out_part = file->next++;
		file->taken[*out_part] = true;
		taken = file;
	}
	lock_leave(&job->lock);
	return taken;
}

static int fetch_part(const struct file *file, size_t part, const struct transfer_options *options,
	struct remote *remote, uint64_t *out_checksum, struct error *err)
{
	const struct remote_object_range range = {
		.target = file->what->target,
		.etag = file->what->etag,
		.offset = part_plan_offset(&file->plan, part),
		.size = part_plan_bytes(&file->plan, part),
		.whole = file->parts == 1,
	};
	struct part_sink sink = {
		.sink = {.write = transfer_sink_write},
		.file = file,
		.offset = range.offset,
		.checksum = xxh3_stream_new(),
		.options = options,
	};
	const int result = remote_object_get(remote, &range, &sink.sink, err);
	ASSERT(result != 0 || sink.offset == range.offset + range.size);
	const struct digest128 digest = xxh3_stream_result(sink.checksum);
	memcpy(out_checksum, digest.bytes, sizeof(*out_checksum));
	xxh3_stream_free(sink.checksum);
	return result;
}

static enum sink_result transfer_sink_write(
	struct body_sink *sink, struct span bytes, struct error *err)
{
	struct part_sink *const part = (struct part_sink *)sink;
	if (file_write_at(part->options->files, part->file->fd, bytes, (off_t)part->offset,
		    part->file->what->part_path, err) != 0)
		return SINK_FAILED;
	xxh3_stream_add(part->checksum, bytes);
	part->offset += bytes.len;
	progress_add(part->options->progress, bytes.len);
	if (part->options->received != NULL)
		atomic_fetch_add(part->options->received, bytes.len);
	return SINK_TAKEN;
}

/* Records a complete part. *out_last: it was the last one of the file. */
static int book_part(struct download_job *job, struct file *file, size_t part, uint64_t checksum,
	bool *out_last, struct error *err)
{
	lock_enter(&job->lock);
	ASSERT(file->taken[part] && file->done < file->parts);
	const int result =
		file->journal == NULL ? 0 : part_journal_add(file->journal, part, checksum, err);
	file->done++;
	*out_last = file->done == file->parts;
	lock_leave(&job->lock);
	return result;
}

/* Includes files that existed already: an earlier call may have been killed before it synced. */
static int sync_names(const struct transfer_options *options, const struct transfer_download *files,
	size_t count, struct error *err)
{
	const char **const paths = memory_new_array(count + 1, sizeof(*paths));
	for (size_t i = 0; i < count; i++)
		paths[i] = files[i].path;
	const int result = folder_files_sync_names(options->files, paths, count, err);
	free(paths);
	return result;
}

static void file_release(struct file *file)
{
	file_close_locked(file->fd);
	part_journal_close(file->journal);
	free(file->taken);
}

static int transfer_upload_piece(void *argument, struct remote *remote, struct error *err)
{
	struct upload_job *const job = argument;
	lock_enter(&job->lock);
	const size_t index = job->next < job->count ? job->next++ : job->count;
	lock_leave(&job->lock);
	if (index == job->count)
		return 0;
	if (upload_file(job, &job->files[index], remote, err) != 0)
		return -1;
	lock_enter(&job->lock);
	const int result = job->done == NULL ? 0 : job->done(job->owner, index, err);
	lock_leave(&job->lock);
	return result == 0 ? 1 : -1;
}

static int upload_file(const struct upload_job *job, const struct transfer_upload *file,
	struct remote *remote, struct error *err)
{
	const int fd = open(file->path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return error_set_errno(err, "opening %s", file->path);
	const struct remote_object_body body = {.fd = fd,
		.size = file->size,
		.path = file->path,
		.progress = job->options->progress};
	const int result = remote_object_put(remote, file->target, &body, err);
	close(fd);
	return result;
}
