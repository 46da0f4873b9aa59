/* Threads take ranges of the open files; a thread that finds none opens the next file. Opening
 * copies from the journal and the seeds, so that ranges are only what is still missing. The thread
 * that finishes the last range of a file takes it off the list, proves it, and renames it or puts
 * it back on the list to download it again. A thread that finds neither a range nor a file waits
 * while others are opening files, because these may bring ranges. */
#include "client/transfer/xet_download.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/thread/lock.h"
#include "client/local/file_map.h"
#include "client/local/folder_files.h"
#include "client/local/part_file.h"
#include "client/transfer/pool.h"
#include "client/transfer/seed_copy.h"

enum {
	RANGE_MIN_BYTES = 8 * 1024 * 1024,
	RANGE_MAX_BYTES = 64 * 1024 * 1024,
	PATH_MAX_BYTES = 8192
};

struct file { /* an open file */
	const struct xet_download_file *what;
	size_t number; /* the index of `what` */
	struct xet_fetch fetch;
	struct file_map map; /* guarded by the lock while the file is on the list, as all below */
	uint64_t at;         /* every range before it is complete or taken */
	unsigned busy;       /* threads that download a range of the file */
	bool restarted;
	struct file *next;
};

struct job {
	const struct xet_download *download;
	const struct xet_download_file *files;
	size_t count;
	struct lock lock;
	size_t next;                  /* the file to open next; guarded by lock, as all below */
	unsigned opening;             /* threads that are opening a file */
	struct lock_condition opened; /* a file was opened, or `opening` fell */
	struct file *open;            /* the list of open files */
};

static unsigned choose_threads(const struct job *job);
static int xet_download_piece(void *argument, struct remote *remote, struct error *err);
static struct file *find_work(struct job *job, struct map_gap *out, size_t *out_number);
static bool take_range(const struct job *job, struct file *file, struct map_gap *out);
static uint64_t range_bytes(const struct job *job, uint64_t size);
static int fetch_range(struct job *job, struct file *file, const struct map_gap *gap,
	struct remote *remote, struct error *err);
static int book_chunks(struct file *file, const struct map_gap *gap, struct map_chunk *chunks,
	size_t count, struct error *err);
static bool take_off_list(struct job *job, struct file *file);
static int settle(struct job *job, struct file *file, struct error *err);
static int prove(struct job *job, struct file *file, struct error *err);
static int finish(struct job *job, struct file *file, struct error *err);
static int report_done(struct job *job, size_t number, struct error *err);
static void put_on_list(struct job *job, struct file *file);
static void file_free(struct file *file);
static int open_file(struct job *job, size_t number, struct remote *remote, struct error *err);
static bool is_there_already(
	const struct job *job, const struct xet_download_file *what, const struct stop *stop);
static int open_part(const struct job *job, struct file *file, struct error *err);
static int journal_path(
	const struct xet_download_file *what, char out[PATH_MAX_BYTES], struct error *err);
static int use_seeds(struct file *file, const struct xet_remote *xet, struct error *err);
static void end_opening(struct job *job);
static int sync_names(const struct xet_download *download, const struct xet_download_file *files,
	size_t count, struct error *err);

int xet_download(const struct xet_download *download, const struct xet_download_file *files,
	size_t count, struct error *err)
{
	ASSERT(download->parallel > 0 && download->cache != NULL);
	struct job job = {.download = download, .files = files, .count = count};
	lock_init(&job.lock, LOCK_TRANSFER_PARTS);
	lock_condition_init(&job.opened);
	const struct pool_params params = {.remote = download->options,
		.own = download->own,
		.threads = choose_threads(&job),
		.piece = xet_download_piece,
		.job = &job};
	int result = count == 0 ? 0 : pool_run(&params, err);
	/* Also after a failure: complete files keep their names, and the caller may download the
	 * rest by plain requests. */
	struct error ignored = {0};
	if (sync_names(download, files, count, result == 0 ? err : &ignored) != 0)
		result = -1;
	while (job.open != NULL) {
		struct file *const file = job.open;
		job.open = file->next;
		file_free(file);
	}
	lock_condition_release(&job.opened);
	lock_release(&job.lock);
	return result;
}

/* Uses as many connections as have enough to do. */
static unsigned choose_threads(const struct job *job)
{
	uint64_t pieces = 0;
	for (size_t i = 0; i < job->count; i++)
		pieces += 1 + job->files[i].size / RANGE_MIN_BYTES;
	return pieces < job->download->parallel ? (unsigned)pieces : job->download->parallel;
}

static int xet_download_piece(void *argument, struct remote *remote, struct error *err)
{
	struct job *const job = argument;
	struct map_gap gap;
	size_t number;
	struct file *const file = find_work(job, &gap, &number);
	if (file != NULL)
		return fetch_range(job, file, &gap, remote, err) == 0 ? 1 : -1;
	if (number == job->count)
		return 0;
	const int result = open_file(job, number, remote, err);
	end_opening(job);
	return result == 0 ? 1 : -1;
}

/* Returns an open file with a range of it, or NULL with the number of a file to open, which is
 * job->count when there is neither. Waits while there is neither but other threads are opening
 * files. */
static struct file *find_work(struct job *job, struct map_gap *out, size_t *out_number)
{
	lock_enter(&job->lock);
	struct file *file = NULL;
	for (;;) {
		file = job->open;
		while (file != NULL && !take_range(job, file, out))
			file = file->next;
		if (file != NULL || job->next < job->count || job->opening == 0)
			break;
		lock_wait(&job->lock, &job->opened);
	}
	*out_number = job->count;
	if (file == NULL && job->next < job->count) {
		*out_number = job->next++;
		job->opening++;
	}
	lock_leave(&job->lock);
	return file;
}

/* Takes the next free range of a file. The caller holds the lock. */
static bool take_range(const struct job *job, struct file *file, struct map_gap *out)
{
	if (!file_map_gap(&file->map, file->at, out))
		return false;
	const uint64_t most = range_bytes(job, file->what->size);
	ASSERT(out->from < out->to);
	if (out->to - out->from > most)
		out->to = out->from + most;
	file->at = out->to;
	file->busy++;
	return true;
}

static uint64_t range_bytes(const struct job *job, uint64_t size)
{
	ASSERT(job->download->parallel > 0);
	const uint64_t share = size / (2 * job->download->parallel);
	return share < RANGE_MIN_BYTES    ? RANGE_MIN_BYTES
		: share < RANGE_MAX_BYTES ? share
					  : RANGE_MAX_BYTES;
}

static int fetch_range(struct job *job, struct file *file, const struct map_gap *gap,
	struct remote *remote, struct error *err)
{
	const struct xet_remote xet = {job->download->access, remote};
	const char *const name = file->what->name;
	struct map_chunk *chunks = NULL;
	size_t count = 0;
	int result = xet_fetch_range(&file->fetch, &xet, gap, &chunks, &count, err);
	if (result != 0 && err->kind == ERROR_CONTENT_DAMAGED && name != NULL)
		error_wrap(err, "%s", name);
	lock_enter(&job->lock);
	if (result == 0)
		result = book_chunks(file, gap, chunks, count, err);
	ASSERT(file->busy > 0);
	file->busy--;
	const bool is_complete = result == 0 && take_off_list(job, file);
	lock_leave(&job->lock);
	free(chunks);
	return is_complete ? settle(job, file, err) : result;
}

/* Adds the chunks of a range to the map. A chunk that continues after the range is only claimed: it
 * is complete when the next range has it too. */
static int book_chunks(struct file *file, const struct map_gap *gap, struct map_chunk *chunks,
	size_t count, struct error *err)
{
	size_t kept = 0;
	for (size_t i = 0; i < count; i++)
		if (chunks[i].offset + chunks[i].size > gap->to)
			file_map_claim(&file->map, &chunks[i]);
		else
			chunks[kept++] = chunks[i];
	return file_map_add(&file->map, chunks, kept, err);
}

/* Takes a file off the list if all its ranges are complete: then the caller must settle it. The
 * caller holds the lock. */
static bool take_off_list(struct job *job, struct file *file)
{
	struct map_gap gap;
	if (file->busy > 0 || file_map_gap(&file->map, file->at, &gap))
		return false;
	struct file **link = &job->open;
	while (*link != file)
		link = &(*link)->next;
	*link = file->next;
	return true;
}

/* Puts a complete file in place and frees it, or puts it back on the list to download it again. */
static int settle(struct job *job, struct file *file, struct error *err)
{
	const int again = prove(job, file, err);
	if (again > 0) {
		file->restarted = true;
		file->at = 0;
		put_on_list(job, file);
		return 0;
	}
	file_free(file);
	return again;
}

/* Proves a file with all its ranges. 1 when they must be downloaded again, 0 when the file is in
 * place. */
static int prove(struct job *job, struct file *file, struct error *err)
{
	if (file_map_is_whole(&file->map))
		return finish(job, file, err);
	file_map_restart(&file->map);
	if (file->what->size == 0)
		return error_set(err, ERROR_DIGEST_MISMATCH,
			"the server says that %s is empty, but its hash is not that of an empty file",
			file->what->path);
	if (file->restarted)
		return error_set(err, ERROR_DIGEST_MISMATCH,
			"%s arrived twice with content that does not match its hash",
			file->what->path);
	progress_take_back(job->download->progress, file->what->size);
	return 1;
}

static int finish(struct job *job, struct file *file, struct error *err)
{
	const struct file_ops *const files = job->download->files;
	const struct xet_download_file *const what = file->what;
	struct file_facts facts;
	if (part_file_finish(files, file->fetch.fd, what->part_path, what->path, err) != 0)
		return -1;
	if (file_facts_of(file->fetch.fd, what->path, &facts, err) != 0)
		return -1;
	hash_cache_add(job->download->cache, what->path, &facts, &what->hash, clock_wall_ms());
	return report_done(job, file->number, err);
}

static int report_done(struct job *job, size_t number, struct error *err)
{
	if (job->download->done == NULL)
		return 0;
	lock_enter(&job->lock);
	const int result = job->download->done(job->download->owner, number, err);
	lock_leave(&job->lock);
	return result;
}

static void put_on_list(struct job *job, struct file *file)
{
	ASSERT(file->busy == 0);
	lock_enter(&job->lock);
	file->next = job->open;
	job->open = file;
	lock_broadcast(&job->opened);
	lock_leave(&job->lock);
}

static void file_free(struct file *file)
{
	file_map_close(&file->map);
	file_close_locked(file->fetch.fd);
	free(file);
}

static int open_file(struct job *job, size_t number, struct remote *remote, struct error *err)
{
	const struct xet_download_file *const what = &job->files[number];
	const struct xet_remote xet = {job->download->access, remote};
	struct map_gap gap;
	if (is_there_already(job, what, remote_stop(remote))) {
		progress_add(job->download->progress, what->size);
		return report_done(job, number, err);
	}
	struct file *const file = memory_new(sizeof(*file));
	file->what = what;
	file->number = number;
	file->map.journal_fd = -1;
	file->fetch = (struct xet_fetch){.file = what->hash,
		.size = what->size,
		.files = job->download->files,
		.fd = -1,
		.path = what->part_path,
		.progress = job->download->progress};
	if (open_part(job, file, err) != 0)
		goto failed;
	progress_add(job->download->progress, file_map_bytes(&file->map));
	if (use_seeds(file, &xet, err) != 0)
		goto failed;
	if (!file_map_gap(&file->map, 0, &gap))
		return settle(job, file, err);
	put_on_list(job, file);
	return 0;
failed:
	file_free(file);
	return -1;
}

static bool is_there_already(
	const struct job *job, const struct xet_download_file *what, const struct stop *stop)
{
	struct error ignored = {0};
	struct file_facts facts;
	struct chunk_id hash;
	return file_facts_read(what->path, &facts, &ignored) == 0 && facts.size == what->size &&
		hash_cache_hash(job->download->cache, what->path, stop, &hash, &ignored) == 0 &&
		chunk_id_equal(&hash, &what->hash);
}

static int open_part(const struct job *job, struct file *file, struct error *err)
{
	const struct file_ops *const files = job->download->files;
	const struct xet_download_file *const what = file->what;
	char journal[PATH_MAX_BYTES];
	if (journal_path(what, journal, err) != 0)
		return -1;
	file->fetch.fd = part_file_open(files, what->part_path, what->size, err);
	if (file->fetch.fd < 0)
		return -1;
	const struct file_map_params params = {.size = what->size,
		.hash = what->hash,
		.journal_path = journal,
		.fd = file->fetch.fd};
	return file_map_open(&file->map, files, &params, err);
}

static int journal_path(
	const struct xet_download_file *what, char out[PATH_MAX_BYTES], struct error *err)
{
	if (snprintf(out, PATH_MAX_BYTES, "%s.chunks", what->part_path) >= PATH_MAX_BYTES)
		return error_set(err, ERROR_INVALID, "the path %s is too long", what->part_path);
	return 0;
}

static int use_seeds(struct file *file, const struct xet_remote *xet, struct error *err)
{
	const struct xet_download_file *const what = file->what;
	if (what->size == 0)
		return 0;
	if (file_exists(what->path) &&
		seed_copy(&file->fetch, xet, &what->path, 1, &file->map, err) != 0)
		return -1;
	return seed_copy(&file->fetch, xet, what->seeds, what->seed_count, &file->map, err);
}

static void end_opening(struct job *job)
{
	lock_enter(&job->lock);
	ASSERT(job->opening > 0);
	job->opening--;
	lock_broadcast(&job->opened);
	lock_leave(&job->lock);
}

/* Includes files that existed already: an earlier call may have been killed before it synced. */
static int sync_names(const struct xet_download *download, const struct xet_download_file *files,
	size_t count, struct error *err)
{
	const char **const paths = memory_new_array(count + 1, sizeof(*paths));
	for (size_t i = 0; i < count; i++)
		paths[i] = files[i].path;
	const int result = folder_files_sync_names(download->files, paths, count, err);
	free(paths);
	return result;
}
