/* A thread takes a segment, reads it and marks the places where chunks may end. The marks do not
 * depend on where a chunk begins, so segments can be marked side by side. Which marks are ends does
 * depend on it: that step runs in the order of the segments, takes almost no time, and hands the
 * open chunk to the next segment (`turn`, `begun`). Then the thread hashes the chunks that end in
 * its segment, while other threads go on. The first failure stops all threads. */
#include "client/local/file_segments.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/thread/lock.h"
#include "chunker/chunk_hash.h"
#include "chunker/gear_marks.h"
#include "client/work/stop.h"
#include "client/work/progress.h"

struct run {
	const struct file_segments *what;
	size_t segment_bytes;
	uint64_t segments;
	struct lock lock; /* guards all that follows */
	struct lock_condition turned;
	uint64_t next;  /* the segment to take next */
	uint64_t turn;  /* the segment to cut next */
	uint64_t begun; /* the offset of the chunk that is open at its beginning */
	struct chunk_entry *entries;
	size_t count, capacity;
	bool failed;
	struct error first;
};

/* A thread and its current segment. `content` has room in front for a chunk that began earlier. */
struct worker {
	struct run *run;
	pthread_t thread;
	uint8_t *memory;
	uint8_t *content;
	uint64_t *marks;
	uint32_t *sizes;      /* of the chunks that end in the segment */
	struct chunk_id *ids; /* of the same */
	size_t chunks_max;    /* room of sizes and ids */
	size_t count;
	uint64_t number; /* of the segment */
	uint64_t offset;
	size_t len;
	uint64_t begun; /* where the first of the chunks begins, perhaps before the segment */
	size_t place;   /* the index of its entry in run.entries */
};

static void run_workers(struct run *run, unsigned count);
static void worker_init(struct worker *worker, struct run *run);
static void *file_segments_work(void *argument);
static bool take_segment(struct worker *worker);
static int read_segment(struct worker *worker, struct error *err);
static int read_bytes(
	const struct worker *worker, uint8_t *into, size_t len, uint64_t offset, struct error *err);
static bool await_turn(struct worker *worker);
static void pass_turn(struct worker *worker, uint64_t begun);
static uint64_t cut(struct worker *worker);
static int hash_chunks(struct worker *worker, struct error *err);
static void book_chunks(const struct worker *worker);
static int fail(struct run *run, const struct error *err);
static void worker_release(struct worker *worker);
static unsigned choose_workers(const struct run *run);

int file_segments_read(const struct file_segments *segments, struct chunk_entry **out_entries,
	size_t *out_count, struct error *err)
{
	ASSERT(segments->size > 0 && segments->fd >= 0);
	struct run run = {.what = segments,
		.segment_bytes = segments->segment_bytes != 0 ? segments->segment_bytes
							      : FILE_SEGMENTS_BYTES};
	run.segments = (segments->size + run.segment_bytes - 1) / run.segment_bytes;
	lock_init(&run.lock, LOCK_FILE_SEGMENTS);
	lock_condition_init(&run.turned);
	run_workers(&run, choose_workers(&run));
	lock_condition_release(&run.turned);
	lock_release(&run.lock);
	*out_entries = run.entries;
	*out_count = run.count;
	if (!run.failed)
		return 0;
	free(run.entries);
	*out_entries = NULL;
	*out_count = 0;
	*err = run.first;
	return -1;
}

/* The calling thread is one of the workers. */
static void run_workers(struct run *run, unsigned count)
{
	struct worker *const workers = memory_new_array(count, sizeof(*workers));
	for (unsigned i = 0; i < count; i++)
		worker_init(&workers[i], run);
	for (unsigned i = 1; i < count; i++)
		lock_thread_start(&workers[i].thread, "chunks", file_segments_work, &workers[i]);
	file_segments_work(&workers[0]);
	for (unsigned i = 1; i < count; i++)
		pthread_join(workers[i].thread, NULL);
	for (unsigned i = 0; i < count; i++)
		worker_release(&workers[i]);
	free(workers);
}

static void worker_init(struct worker *worker, struct run *run)
{
	worker->run = run;
	/* one chunk may begin before the segment, and one may end with the file */
	worker->chunks_max = run->segment_bytes / CHUNK_MIN_BYTES + 2;
	worker->memory = memory_new(CHUNK_MAX_BYTES + run->segment_bytes);
	worker->content = worker->memory + CHUNK_MAX_BYTES;
	worker->marks =
		memory_new_array(gear_marks_words(run->segment_bytes), sizeof(*worker->marks));
	worker->sizes = memory_new_array(worker->chunks_max, sizeof(*worker->sizes));
	worker->ids = memory_new_array(worker->chunks_max, sizeof(*worker->ids));
}

static void *file_segments_work(void *argument)
{
	struct worker *const worker = argument;
	struct error err = {0};
	int result = 0;
	while (result == 0 && take_segment(worker)) {
		result = read_segment(worker, &err);
		if (result == 0 && !await_turn(worker))
			break;
		if (result == 0) {
			pass_turn(worker, cut(worker));
			result = hash_chunks(worker, &err);
		}
		if (result == 0)
			book_chunks(worker);
	}
	if (result != 0)
		fail(worker->run, &err);
	return NULL;
}

static bool take_segment(struct worker *worker)
{
	struct run *const run = worker->run;
	lock_enter(&run->lock);
	const bool taken = !run->failed && run->next < run->segments;
	if (taken)
		worker->number = run->next++;
	lock_leave(&run->lock);
	worker->offset = worker->number * run->segment_bytes;
	const uint64_t left = run->what->size - worker->offset;
	worker->len = left < run->segment_bytes ? (size_t)left : run->segment_bytes;
	return taken;
}

static int read_segment(struct worker *worker, struct error *err)
{
	const size_t before =
		worker->offset < GEAR_MARKS_BEFORE ? (size_t)worker->offset : GEAR_MARKS_BEFORE;
	ASSERT(worker->len > 0 && worker->len <= worker->run->segment_bytes);
	if (stop_check(worker->run->what->stop, err) != 0 ||
		read_bytes(worker, worker->content - before, before + worker->len,
			worker->offset - before, err) != 0)
		return -1;
	gear_marks_find(span_of(worker->content, worker->len), worker->marks);
	progress_add(worker->run->what->progress, worker->len);
	return 0;
}

static int read_bytes(
	const struct worker *worker, uint8_t *into, size_t len, uint64_t offset, struct error *err)
{
	const struct file_segments *const what = worker->run->what;
	const struct iovec part = {.iov_base = into, .iov_len = len};
	if (file_read_at(file_system(), what->fd, part, (off_t)offset, what->path, err) == 0)
		return 0;
	return err->kind == ERROR_CORRUPT
		? error_set(err, ERROR_INVALID, "%s changed while it was read", what->path)
		: -1;
}

/* Waits until the segment may be cut. False when another thread has failed. */
static bool await_turn(struct worker *worker)
{
	struct run *const run = worker->run;
	lock_enter(&run->lock);
	while (!run->failed && run->turn != worker->number)
		lock_wait(&run->lock, &run->turned);
	const bool mine = !run->failed;
	worker->begun = run->begun;
	lock_leave(&run->lock);
	return mine;
}

/* Reserves the entries of this segment's chunks and lets the next segment be cut. The ids follow
 * later. */
static void pass_turn(struct worker *worker, uint64_t begun)
{
	struct run *const run = worker->run;
	lock_enter(&run->lock);
	ASSERT(run->turn == worker->number);
	worker->place = run->count;
	run->count += worker->count;
	if (run->count > run->capacity) {
		run->capacity = 2 * run->count;
		run->entries = memory_grow(run->entries, run->capacity, sizeof(*run->entries));
	}
	run->begun = begun;
	run->turn++;
	lock_broadcast(&run->turned);
	lock_leave(&run->lock);
}

/* Lists the sizes of the chunks that end in the segment and returns where the next chunk begins.
 * The end of the file ends a chunk. */
static uint64_t cut(struct worker *worker)
{
	uint64_t begun = worker->begun;
	const bool is_last = worker->number + 1 == worker->run->segments;
	const uint64_t end = worker->offset + worker->len;
	worker->count = 0;
	while (begun < end) {
		const size_t found = gear_marks_end(
			worker->marks, worker->len, (ptrdiff_t)worker->offset - (ptrdiff_t)begun);
		if (found == 0 && !is_last)
			break;
		const uint64_t next = found == 0 ? end : worker->offset + found;
		ASSERT(worker->count < worker->chunks_max);
		worker->sizes[worker->count++] = (uint32_t)(next - begun);
		begun = next;
	}
	return begun;
}

static int hash_chunks(struct worker *worker, struct error *err)
{
	const size_t before =
		worker->begun < worker->offset ? (size_t)(worker->offset - worker->begun) : 0;
	if (worker->count == 0)
		return 0;
	ASSERT(before <= CHUNK_MAX_BYTES); /* the room in front of content */
	if (before > 0 &&
		read_bytes(worker, worker->content - before, before, worker->begun, err) != 0)
		return -1;
	const uint8_t *at = worker->content + (ptrdiff_t)(worker->begun - worker->offset);
	for (size_t i = 0; i < worker->count; i++) {
		worker->ids[i] = chunk_hash(span_of(at, worker->sizes[i]));
		at += worker->sizes[i];
	}
	return 0;
}

static void book_chunks(const struct worker *worker)
{
	struct run *const run = worker->run;
	lock_enter(&run->lock);
	ASSERT(worker->place + worker->count <= run->count);
	for (size_t i = 0; i < worker->count; i++)
		run->entries[worker->place + i] =
			(struct chunk_entry){.id = worker->ids[i], .size = worker->sizes[i]};
	lock_leave(&run->lock);
}

static int fail(struct run *run, const struct error *err)
{
	lock_enter(&run->lock);
	if (!run->failed)
		run->first = *err;
	run->failed = true;
	lock_broadcast(&run->turned);
	lock_leave(&run->lock);
	return -1;
}

static void worker_release(struct worker *worker)
{
	free(worker->ids);
	free(worker->sizes);
	free(worker->marks);
	free(worker->memory);
}

static unsigned choose_workers(const struct run *run)
{
	const long processors = sysconf(_SC_NPROCESSORS_ONLN);
	uint64_t count = run->what->workers != 0 ? run->what->workers
						 : (uint64_t)(processors > 0 ? processors : 1);
	if (count > FILE_SEGMENTS_WORKERS_MAX)
		count = FILE_SEGMENTS_WORKERS_MAX;
	return (unsigned)(count < run->segments ? count : run->segments);
}
