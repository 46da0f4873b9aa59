/* What storing and reading costs without a network: ingests random bytes in process, in writes of
 * 256 KiB as a connection makes them, then reads them back. Prints seconds per GB: of the writing
 * thread's CPU, of the process's, and of the clock; beside plain MD5 in the same run.
 *
 *   ingest_rate FOLDER [MIB]      FOLDER is made and filled; MIB defaults to 1024 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "base/digest/digest.h"
#include "base/memory.h"
#include "storage/ingest/ingest.h"
#include "storage/packs/assemble.h"

enum { WRITE_BYTES = 256 * 1024, SOURCE_BYTES = 8 * 1024 * 1024, DEFAULT_MIB = 1024 };

struct ingest_rate {
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	bool has_room;
	bool is_done;
};
struct rate_times {
	double thread;
	double process;
	double wall;
};

static double rate_clock(clockid_t id)
{
	struct timespec now;
	clock_gettime(id, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static struct rate_times rate_now(void)
{
	return (struct rate_times){rate_clock(CLOCK_THREAD_CPUTIME_ID),
		rate_clock(CLOCK_PROCESS_CPUTIME_ID), rate_clock(CLOCK_MONOTONIC)};
}

static void rate_print(const char *what, const struct rate_times *since, uint64_t bytes)
{
	const struct rate_times now = rate_now();
	const double gigabytes = (double)bytes * 1e-9;
	struct rusage usage;
	getrusage(RUSAGE_SELF, &usage);
	printf("%-18s thread %.3f  process %.3f  wall %.3f s/GB  (peak memory %ld MiB)\n", what,
		(now.thread - since->thread) / gigabytes,
		(now.process - since->process) / gigabytes, (now.wall - since->wall) / gigabytes,
		usage.ru_maxrss / 1024);
}

static void rate_set(struct ingest_rate *rate, bool *flag)
{
	pthread_mutex_lock(&rate->mutex);
	*flag = true;
	pthread_cond_signal(&rate->changed);
	pthread_mutex_unlock(&rate->mutex);
}

static void rate_room(void *owner)
{
	struct ingest_rate *const rate = owner;
	rate_set(rate, &rate->has_room);
}

static void rate_done(void *owner)
{
	struct ingest_rate *const rate = owner;
	rate_set(rate, &rate->is_done);
}

static void rate_wait(struct ingest_rate *rate, bool *flag)
{
	pthread_mutex_lock(&rate->mutex);
	while (!*flag)
		pthread_cond_wait(&rate->changed, &rate->mutex);
	*flag = false;
	pthread_mutex_unlock(&rate->mutex);
}

/* Random enough that no chunk repeats: xorshift, each block again. */
static void rate_fill(uint8_t *into, size_t len, uint64_t *state)
{
	for (size_t i = 0; i + 8 <= len; i += 8) {
		*state ^= *state << 13;
		*state ^= *state >> 7;
		*state ^= *state << 17;
		for (unsigned k = 0; k < 8; k++)
			into[i + k] = (uint8_t)(*state >> (8 * k));
	}
}

static void rate_fail(const struct error *err)
{
	fprintf(stderr, "ingest_rate: %s\n", err->text);
	exit(EXIT_FAILURE);
}

/* Fills outside the measured time would need the whole stream in memory; so each source block is
 * altered, not made again: one word in 4 KiB. */
static void rate_alter(uint8_t *block, uint64_t round)
{
	for (size_t i = 0; i < SOURCE_BYTES; i += 4096)
		block[i] = (uint8_t)(block[i] + round + 1);
}

enum rate_kind { RATE_MD5, RATE_NO_MD5, RATE_WARM_UP };

static void rate_print_put(
	enum rate_kind kind, bool is_done, const struct rate_times *since, uint64_t bytes)
{
	static const char *const names[][2] = {
		{"  written", "put"}, {"  written, no MD5", "put, no MD5"}};
	if (kind != RATE_WARM_UP)
		rate_print(names[kind][is_done], since, bytes);
}

static struct ingest *rate_put(
	struct pack_store *store, uint8_t *block, uint64_t bytes, enum rate_kind kind)
{
	struct ingest_rate rate = {
		.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
	struct error err = {0};
	const struct ingest_options options = {.packs = store,
		.want_md5 = kind == RATE_MD5,
		.room = rate_room,
		.done = rate_done,
		.owner = &rate};
	struct ingest *const ingest = ingest_open(&options, &err);
	const struct rate_times since = rate_now();
	for (uint64_t at = 0; at < bytes; at += WRITE_BYTES) {
		if (at % SOURCE_BYTES == 0)
			rate_alter(block, at / SOURCE_BYTES);
		enum sink_result result;
		while ((result = ingest_write(
				ingest, span_of(block + at % SOURCE_BYTES, WRITE_BYTES), &err)) ==
			SINK_WAIT)
			rate_wait(&rate, &rate.has_room);
		if (result == SINK_FAILED)
			rate_fail(&err);
	}
	rate_print_put(kind, false, &since, bytes);
	ingest_finish(ingest);
	rate_wait(&rate, &rate.is_done);
	rate_print_put(kind, true, &since, bytes);
	if (ingest_outcome(ingest, &err) != 0)
		rate_fail(&err);
	if (kind != RATE_WARM_UP)
		ingest_committed(ingest);
	return ingest;
}

static void rate_get(struct pack_store *store, const struct stored_part *part)
{
	struct error err = {0};
	uint8_t *const into = memory_new(ASSEMBLE_BLOCK_BYTES);
	const struct rate_times since = rate_now();
	struct body_source *const source =
		assemble_open(store, part->segments, part->segment_count, 0, part->size, &err);
	if (source == NULL)
		rate_fail(&err);
	uint64_t total = 0;
	ptrdiff_t len;
	while ((len = source->read(source, into, ASSEMBLE_BLOCK_BYTES, &err)) > 0)
		total += (uint64_t)len;
	if (len < 0 || total != part->size)
		rate_fail(&err);
	source->close(source);
	rate_print("get", &since, total);
	free(into);
}

static void rate_md5(const uint8_t *block, uint64_t bytes)
{
	struct md5_stream *const stream = md5_stream_new();
	uint8_t digest[MD5_BYTES];
	const struct rate_times since = rate_now();
	for (uint64_t at = 0; at < bytes; at += WRITE_BYTES)
		md5_stream_add(stream, span_of(block + at % SOURCE_BYTES, WRITE_BYTES));
	md5_stream_result(stream, digest);
	rate_print("md5 alone", &since, bytes);
	md5_stream_free(stream);
}

int main(int argc, char **argv)
{
	struct error err = {0};
	const uint64_t bytes = (argc > 2 ? (uint64_t)atoi(argv[2]) : DEFAULT_MIB) << 20;
	struct backend *const backend =
		argc > 1 ? backend_folder_open(argv[1], "unused", NULL, &err) : NULL;
	if (backend == NULL || bytes == 0 || bytes % SOURCE_BYTES != 0) {
		fprintf(stderr, "usage: ingest_rate FOLDER [MIB, a multiple of 8] %s\n", err.text);
		return EXIT_FAILURE;
	}
	struct helpers *const helpers = helpers_start(4);
	bool rebuild;
	const struct chunk_index_options index_options = {
		.files = file_system(), .path = ":memory:"};
	struct chunk_index *const chunk_index = chunk_index_open(&index_options, &rebuild, &err);
	const struct pack_store_options options = {
		.backend = backend, .chunk_index = chunk_index, .helpers = helpers};
	struct pack_store *const store = pack_store_open(&options, &err);
	if (store == NULL)
		rate_fail(&err);
	uint8_t *const block = memory_new(SOURCE_BYTES);
	uint64_t state = 88172645463325252u;
	rate_fill(block, SOURCE_BYTES, &state);
	rate_md5(block, bytes);
	/* The first touch of a virtual machine's memory costs several times the writing itself: an
	 * unmeasured round, then aborted, takes it. */
	ingest_free(rate_put(store, block, 2 * bytes, RATE_WARM_UP));
	struct ingest *const ingests[] = {rate_put(store, block, bytes, RATE_MD5),
		rate_put(store, block, bytes, RATE_NO_MD5)};
	rate_get(store, ingest_part(ingests[0]));
	rate_get(store, ingest_part(ingests[0]));
	for (size_t i = 0; i < 2; i++)
		ingest_free(ingests[i]);
	helpers_stop(helpers);
	pack_store_close(store);
	chunk_index_close(chunk_index);
	free(block);
	return EXIT_SUCCESS;
}
