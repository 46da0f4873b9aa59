#include "tests/unit/unit.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "storage/far/block_cache.h"
#include "tests/unit/storage/store_fixture.h"

enum { BLOCK = 64 * 1024, BLOCKS = 8, SIZE = BLOCK * BLOCKS - 1000, READERS = 12, WAIT_US = 2000 };
static const char NAME[] = "0123456789abcdef.pack";

struct source { /* of files that all have the same bytes */
	struct block_source base;
	_Atomic int sizes;
	_Atomic int reads;
	_Atomic int wrong; /* so many answers have wrong bytes */
	_Atomic int short_total;
	_Atomic bool is_away;
	_Atomic bool is_held; /* answers wait */
};

static struct source source;
static struct block_cache *cache;
static uint8_t *bytes;
static char *scratch;
static char folder[4096];
static struct error err;

static void wait_while_held(void)
{
	while (atomic_load(&source.is_held))
		usleep(WAIT_US);
}

static int size_of(struct block_source *base, const char *name, uint64_t *out, struct error *why)
{
	(void)base, (void)name;
	atomic_fetch_add(&source.sizes, 1);
	if (atomic_load(&source.is_away))
		return error_set(why, ERROR_BUSY, "The source is away.");
	*out = SIZE;
	return 0;
}

static int read_of(struct block_source *base, const char *name, uint64_t offset, struct iovec into,
	uint64_t *out_total, struct error *why)
{
	(void)base, (void)name;
	atomic_fetch_add(&source.reads, 1);
	wait_while_held();
	*out_total = UINT64_MAX;
	if (atomic_load(&source.is_away))
		return error_set(why, ERROR_BUSY, "The source is away.");
	*out_total = SIZE;
	if (atomic_fetch_sub(&source.short_total, 1) > 0)
		return error_set(why, ERROR_CORRUPT, "The answer is too short.");
	ck_assert_uint_le(offset + into.iov_len, SIZE);
	memcpy(into.iov_base, bytes + offset, into.iov_len);
	if (atomic_fetch_sub(&source.wrong, 1) > 0)
		memset(into.iov_base, 0x55, into.iov_len);
	return 0;
}

static void open_cache(unsigned blocks, const struct file_ops *files)
{
	const struct block_cache_options options = {.folder = folder,
		.files = files,
		.source = &source.base,
		.max_bytes = (uint64_t)blocks * BLOCK,
		.block_bytes = BLOCK,
		.threads = 4,
		.open_files = 2};
	cache = block_cache_open(&options, &err);
	ck_assert_msg(cache != NULL, "%s", err.text);
}

static void set_up(void)
{
	memset(&source, 0, sizeof(source));
	source.base = (struct block_source){.size = size_of, .read = read_of};
	err = (struct error){0};
	bytes = fixture_noise(SIZE, 5);
	scratch = unit_scratch_make();
	snprintf(folder, sizeof(folder), "%s/packs", scratch);
	open_cache(100, NULL);
}

static void tear_down(void)
{
	if (cache != NULL)
		block_cache_close(cache);
	free(bytes);
	unit_scratch_remove(scratch);
}

static void reopen(unsigned blocks)
{
	block_cache_close(cache);
	open_cache(blocks, NULL);
	atomic_store(&source.reads, 0);
	atomic_store(&source.sizes, 0);
}

static int read_at(struct block_file *file, uint64_t offset, size_t len, uint8_t *into)
{
	const struct iovec parts[] = {{.iov_base = into, .iov_len = len / 3},
		{.iov_base = into + len / 3, .iov_len = len - len / 3}};
	return block_file_read(file, parts, 2, offset, &err);
}

static bool is_right(struct block_file *file, uint64_t offset, size_t len)
{
	uint8_t *const into = malloc(len);
	const int result = read_at(file, offset, len, into);
	ck_assert_msg(result == 0, "%s", err.text);
	const bool is_same = memcmp(into, bytes + offset, len) == 0;
	free(into);
	return is_same;
}

static bool file_right(const char *name, uint64_t offset, size_t len)
{
	struct block_file *const file = block_cache_file(cache, name);
	const bool is_same = is_right(file, offset, len);
	block_file_close(file);
	return is_same;
}

static uint64_t disk_bytes(void)
{
	char command[5000];
	uint64_t kib = 0;
	snprintf(command, sizeof(command), "du -sk %s", folder);
	FILE *const pipe = popen(command, "r");
	ck_assert_int_eq(fscanf(pipe, "%lu", &kib), 1);
	pclose(pipe);
	return kib * 1024;
}

START_TEST(reads_cross_blocks)
{
	ck_assert(file_right(NAME, 0, SIZE));
	ck_assert(file_right(NAME, BLOCK - 10, 20));
	ck_assert(file_right(NAME, SIZE - 1, 1));
	ck_assert_int_eq(atomic_load(&source.reads), BLOCKS);
	ck_assert_int_eq(atomic_load(&source.sizes), 1);
}
END_TEST

START_TEST(a_read_past_the_end_is_corrupt)
{
	uint8_t into[20];
	struct block_file *const file = block_cache_file(cache, NAME);
	ck_assert_int_eq(read_at(file, SIZE - 10, 20, into), -1);
	ck_assert_int_eq(err.kind, ERROR_CORRUPT);
	ck_assert_int_eq(read_at(file, SIZE + BLOCK, 20, into), -1);
	ck_assert_int_eq(err.kind, ERROR_CORRUPT);
	block_file_close(file);
}
END_TEST

static void *read_one(void *argument)
{
	(void)argument;
	ck_assert(file_right(NAME, 100, 1000));
	return NULL;
}

START_TEST(many_readers_of_one_block_make_one_request)
{
	pthread_t threads[READERS];
	atomic_store(&source.is_held, true);
	for (int i = 0; i < READERS; i++)
		pthread_create(&threads[i], NULL, read_one, NULL);
	while (atomic_load(&source.reads) == 0)
		usleep(WAIT_US);
	usleep(20 * WAIT_US);
	atomic_store(&source.is_held, false);
	for (int i = 0; i < READERS; i++)
		pthread_join(threads[i], NULL);
	ck_assert_int_eq(atomic_load(&source.reads), 1);
}
END_TEST

static void await_near(struct block_file *file, uint64_t offset, uint64_t length)
{
	for (int i = 0; i < 5000 && !block_file_is_near(file, offset, length); i++)
		usleep(WAIT_US);
	ck_assert(block_file_is_near(file, offset, length));
}

START_TEST(what_follows_is_fetched_ahead)
{
	struct block_file *const file = block_cache_file(cache, NAME);
	ck_assert(is_right(file, 0, 100));
	usleep(10 * WAIT_US);
	ck_assert_int_eq(atomic_load(&source.reads), 1);
	ck_assert(is_right(file, BLOCK, 100));
	await_near(file, 2 * BLOCK, 2 * BLOCK);
	ck_assert(!block_file_is_near(file, 4 * BLOCK, 1));
	ck_assert(is_right(file, 2 * BLOCK, 100));
	await_near(file, 4 * BLOCK, 3 * BLOCK);
	ck_assert(!block_file_is_near(file, 7 * BLOCK, 1));
	block_file_close(file);
}
END_TEST

static void wake(void *owner)
{
	atomic_fetch_add((_Atomic int *)owner, 1);
}

static void await(_Atomic int *woken, int count)
{
	for (int i = 0; i < 5000 && atomic_load(woken) < count; i++)
		usleep(WAIT_US);
	ck_assert_int_eq(atomic_load(woken), count);
}

START_TEST(a_fetch_wakes_once_when_all_is_here)
{
	_Atomic int woken = 0;
	struct block_file *const file = block_cache_file(cache, NAME);
	ck_assert(!block_file_is_near(file, BLOCK - 5, 10));
	atomic_store(&source.is_held, true);
	block_file_fetch(file, BLOCK - 5, 10, wake, &woken);
	block_file_fetch(file, 0, 10, wake, &woken);
	usleep(10 * WAIT_US);
	ck_assert_int_eq(atomic_load(&woken), 0);
	atomic_store(&source.is_held, false);
	await(&woken, 2);
	ck_assert(block_file_is_near(file, BLOCK - 5, 10));
	block_file_fetch(file, 10, 10, wake, &woken);
	ck_assert_int_eq(atomic_load(&woken), 3);
	ck_assert(is_right(file, BLOCK - 5, 10));
	block_file_close(file);
}
END_TEST

START_TEST(a_failure_wakes_and_fails_at_once)
{
	uint8_t into[10];
	_Atomic int woken = 0;
	struct block_file *const file = block_cache_file(cache, NAME);
	atomic_store(&source.is_away, true);
	block_file_fetch(file, 0, 10, wake, &woken);
	await(&woken, 1);
	ck_assert(block_file_is_near(file, 0, 10));
	atomic_store(&source.is_held, true); /* nothing is asked again */
	ck_assert_int_eq(read_at(file, 0, 10, into), -1);
	ck_assert_int_eq(err.kind, ERROR_BUSY);
	atomic_store(&source.is_held, false);
	atomic_store(&source.is_away, false);
	usleep(1200 * 1000);
	ck_assert(is_right(file, 0, 10));
	block_file_close(file);
}
END_TEST

START_TEST(what_was_forgotten_is_fetched_again)
{
	uint8_t into[10];
	atomic_store(&source.wrong, 1);
	struct block_file *const file = block_cache_file(cache, NAME);
	ck_assert_int_eq(read_at(file, 0, 10, into), 0);
	ck_assert(memcmp(into, bytes, 10) != 0);
	block_file_forget(file, 5, 1);
	ck_assert(!block_file_is_near(file, 0, 10));
	ck_assert(is_right(file, 0, 10));
	ck_assert_int_eq(atomic_load(&source.reads), 2);
	block_file_close(file);
}
END_TEST

/* Bytes that come after their block was forgotten are older than that. */
START_TEST(a_block_that_is_forgotten_on_its_way_is_fetched_again)
{
	_Atomic int woken = 0;
	struct block_file *const file = block_cache_file(cache, NAME);
	atomic_store(&source.wrong, 1);
	atomic_store(&source.is_held, true);
	block_file_fetch(file, 0, 10, wake, &woken);
	while (atomic_load(&source.reads) == 0)
		usleep(WAIT_US);
	block_file_forget(file, 0, 10);
	atomic_store(&source.is_held, false);
	await(&woken, 1);
	ck_assert(is_right(file, 0, 10));
	block_file_close(file);
}
END_TEST

START_TEST(a_wrong_length_is_asked_for_again)
{
	uint8_t into[10];
	atomic_store(&source.short_total, 1);
	ck_assert(file_right(NAME, 0, 10));
	ck_assert_int_eq(atomic_load(&source.reads), 2);
	atomic_store(&source.short_total, 2);
	struct block_file *const file = block_cache_file(cache, NAME);
	ck_assert_int_eq(read_at(file, 3 * BLOCK, 10, into), -1);
	ck_assert_int_eq(err.kind, ERROR_CORRUPT);
	block_file_close(file);
}
END_TEST

START_TEST(the_oldest_blocks_make_room)
{
	reopen(4);
	struct block_file *const file = block_cache_file(cache, NAME);
	for (int i = 0; i < BLOCKS; i += 2) /* no reader in order */
		ck_assert(is_right(file, (uint64_t)i * BLOCK, 100));
	ck_assert(is_right(file, 0, 100)); /* used again */
	ck_assert_int_eq(atomic_load(&source.reads), 4);
	ck_assert(is_right(file, 3 * BLOCK, 100));
	ck_assert(block_file_is_near(file, 0, 100));
	ck_assert(!block_file_is_near(file, 2 * BLOCK, 100));
	ck_assert_uint_le(disk_bytes(), 5 * BLOCK);
	block_file_close(file);
	for (int i = 0; i < 10; i++) {
		char name[32];
		snprintf(name, sizeof(name), "%02dxxxxxxxx.pack", i);
		ck_assert(file_right(name, 0, 100));
	}
	ck_assert_uint_le(disk_bytes(), 5 * BLOCK + 64 * 1024);
	char path[5000];
	snprintf(path, sizeof(path), "%s/01/%s", folder, NAME);
	ck_assert(!file_exists(path));
}
END_TEST

static void *read_all(void *argument)
{
	unsigned seed = (unsigned)(uintptr_t)argument;
	for (int i = 0; i < 400; i++) {
		char name[32];
		snprintf(name, sizeof(name), "%02dxxxxxxxx.pack", (int)(rand_r(&seed) % 5));
		const uint64_t at = rand_r(&seed) % (SIZE - 3000);
		ck_assert(file_right(name, at, 3000));
	}
	return NULL;
}

START_TEST(evictions_never_show)
{
	pthread_t threads[4];
	reopen(3);
	for (uintptr_t i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, read_all, (void *)(i + 1));
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
}
END_TEST

START_TEST(blocks_survive_a_restart)
{
	ck_assert(file_right(NAME, BLOCK, BLOCK));
	ck_assert(file_right(NAME, 7 * BLOCK, 100));
	reopen(100);
	ck_assert(file_right(NAME, BLOCK, BLOCK));
	ck_assert(file_right(NAME, 7 * BLOCK, 100));
	ck_assert_int_eq(atomic_load(&source.reads) + atomic_load(&source.sizes), 0);
	ck_assert(file_right(NAME, 0, 100));
	ck_assert_int_eq(atomic_load(&source.reads), 1);
}
END_TEST

/* A file whose length was not yet written out when the power went. */
START_TEST(a_wrong_local_length_costs_requests_alone)
{
	char path[5000];
	ck_assert(file_right(NAME, 0, 2 * BLOCK));
	block_cache_close(cache);
	snprintf(path, sizeof(path), "%s/01/%s", folder, NAME);
	ck_assert_int_eq(truncate(path, BLOCK + 50), 0);
	open_cache(100, NULL);
	ck_assert(file_right(NAME, BLOCK - 100, 300));
	ck_assert(file_right(NAME, 0, SIZE));
}
END_TEST

START_TEST(lost_local_files_cost_requests_alone)
{
	char command[5000];
	ck_assert(file_right(NAME, 0, SIZE));
	for (int i = 0; i < 4; i++) { /* its descriptor is closed */
		char name[32];
		snprintf(name, sizeof(name), "%02dxxxxxxxx.pack", i);
		ck_assert(file_right(name, 0, 100));
	}
	snprintf(command, sizeof(command), "rm -r %s/01", folder);
	ck_assert_int_eq(system(command), 0);
	ck_assert(file_right(NAME, 0, SIZE));
	ck_assert(file_right(NAME, 0, SIZE));
}
END_TEST

START_TEST(a_full_disk_keeps_nothing_and_fails_no_read)
{
	struct file_faults faults;
	block_cache_close(cache);
	file_faults_init(&faults, FILE_FAULT_WRITE, 0, ENOSPC);
	faults.sticky = true;
	open_cache(100, &faults.ops);
	ck_assert(file_right(NAME, 0, SIZE));
	ck_assert(file_right(NAME, 0, SIZE));
	struct block_file *const file = block_cache_file(cache, NAME);
	_Atomic int woken = 0;
	block_file_fetch(file, 0, 10, wake, &woken);
	await(&woken, 1);
	ck_assert(block_file_is_near(file, 0, 10));
	ck_assert(is_right(file, 0, 10));
	block_file_close(file);
	block_cache_close(cache);
	cache = NULL;
}
END_TEST

static struct block_file *write_file(size_t len)
{
	struct block_file *const file = block_cache_create(cache, NAME, &err);
	ck_assert_msg(file != NULL, "%s", err.text);
	for (size_t at = 0; at < len; at += 50000) {
		const size_t piece = len - at < 50000 ? len - at : 50000;
		ck_assert_int_eq(block_file_write(file, span_of(bytes + at, piece), at, &err), 0);
	}
	return file;
}

START_TEST(what_was_written_is_near_and_stays)
{
	reopen(2);
	struct block_file *const file = write_file(SIZE);
	struct block_file *const other = block_cache_file(cache, NAME);
	ck_assert(block_file_is_near(other, 0, SIZE));
	ck_assert(file_right("20xxxxxx.pack", 0, SIZE)); /* needs more than there is */
	ck_assert(is_right(other, 0, SIZE));
	const int before = atomic_load(&source.reads);
	block_file_stored(file);
	ck_assert(is_right(other, SIZE - 100, 100));
	ck_assert_int_eq(atomic_load(&source.reads), before);
	ck_assert(file_right("20xxxxxx.pack", 0, BLOCK)); /* now it goes */
	ck_assert(is_right(other, 0, SIZE));
	ck_assert_uint_le(disk_bytes(), 3 * BLOCK + 64 * 1024);
	block_file_close(other);
	block_file_close(file);
}
END_TEST

START_TEST(stored_files_survive_a_restart_and_others_do_not)
{
	struct block_file *file = write_file(SIZE);
	ck_assert_int_eq(block_file_truncate(file, SIZE - 10, &err), 0);
	ck_assert_int_eq(
		block_file_write(file, span_of(bytes + SIZE - 10, 10), SIZE - 10, &err), 0);
	block_file_stored(file);
	block_file_close(file);
	reopen(100);
	ck_assert(file_right(NAME, 0, SIZE));
	ck_assert_int_eq(atomic_load(&source.reads), 0);
	ck_assert(block_cache_remove(cache, NAME));
	file = write_file(60000);
	block_file_close(file);
	reopen(100);
	ck_assert_uint_lt(disk_bytes(), 32 * 1024);
	ck_assert(file_right(NAME, 0, 2000));
	ck_assert_int_eq(atomic_load(&source.reads), 1);
}
END_TEST

START_TEST(a_removal_says_whether_the_source_may_have_it)
{
	struct block_file *file = write_file(1000);
	block_file_close(file);
	ck_assert(!block_cache_remove(cache, NAME));
	file = write_file(1000);
	block_file_sent(file);
	block_file_close(file);
	ck_assert(block_cache_remove(cache, NAME));
	ck_assert(block_cache_remove(cache, NAME)); /* unknown here */
	ck_assert_uint_le(disk_bytes(), 16 * 1024);
}
END_TEST

START_TEST(a_close_ends_the_waits)
{
	_Atomic int woken = 0;
	struct block_file *const file = block_cache_file(cache, NAME);
	ck_assert(is_right(file, 0, 1)); /* its length is known */
	atomic_store(&source.is_held, true);
	for (int i = 1; i < BLOCKS; i++)
		block_file_fetch(file, (uint64_t)i * BLOCK, 10, wake, &woken);
	block_file_close(file);
	atomic_store(&source.is_away, true);
	atomic_store(&source.is_held, false);
	block_cache_close(cache);
	cache = NULL;
	ck_assert_int_eq(atomic_load(&woken), BLOCKS - 1);
}
END_TEST

Suite *test_block_cache_suite(void);
Suite *test_block_cache_suite(void)
{
	Suite *const suite = suite_create("block_cache");
	TCase *const tests = tcase_create("block_cache");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_set_timeout(tests, 60);
	tcase_add_test(tests, reads_cross_blocks);
	tcase_add_test(tests, a_read_past_the_end_is_corrupt);
	tcase_add_test(tests, many_readers_of_one_block_make_one_request);
	tcase_add_test(tests, what_follows_is_fetched_ahead);
	tcase_add_test(tests, a_fetch_wakes_once_when_all_is_here);
	tcase_add_test(tests, a_failure_wakes_and_fails_at_once);
	tcase_add_test(tests, what_was_forgotten_is_fetched_again);
	tcase_add_test(tests, a_block_that_is_forgotten_on_its_way_is_fetched_again);
	tcase_add_test(tests, a_wrong_length_is_asked_for_again);
	tcase_add_test(tests, the_oldest_blocks_make_room);
	tcase_add_test(tests, evictions_never_show);
	tcase_add_test(tests, blocks_survive_a_restart);
	tcase_add_test(tests, a_wrong_local_length_costs_requests_alone);
	tcase_add_test(tests, lost_local_files_cost_requests_alone);
	tcase_add_test(tests, a_full_disk_keeps_nothing_and_fails_no_read);
	tcase_add_test(tests, what_was_written_is_near_and_stays);
	tcase_add_test(tests, stored_files_survive_a_restart_and_others_do_not);
	tcase_add_test(tests, a_removal_says_whether_the_source_may_have_it);
	tcase_add_test(tests, a_close_ends_the_waits);
	suite_add_tcase(suite, tests);
	return suite;
}
