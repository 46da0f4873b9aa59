#include "base/thread/md5_pool.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/thread/lock.h"
#include "tests/unit/unit.h"

enum { STREAMS = 40, BLOCKS = 25, SOURCE_BYTES = 100000, BLOCK_MAX_BYTES = 9000 };

struct block {
	struct md5_pool_job job;
	atomic_int *left;
};

static void block_done(struct md5_pool_job *job)
{
	struct block *const block = (struct block *)job;
	atomic_fetch_sub(block->left, 1);
	free(block);
}

struct fixture {
	struct helpers *helpers;
	struct md5_pool *pool;
	struct md5_pool_stream streams[STREAMS];
	uint8_t source[SOURCE_BYTES];
	size_t ends[STREAMS]; /* end of the submitted part of the source */
	atomic_int left;
};

static void fixture_open(struct fixture *fixture, unsigned threads)
{
	memset(fixture, 0, sizeof *fixture);
	unsigned seed = 1;
	for (size_t i = 0; i < SOURCE_BYTES; i++)
		fixture->source[i] = (uint8_t)((seed = seed * 1664525 + 1013904223) >> 24);
	for (size_t i = 0; i < STREAMS; i++)
		fixture->streams[i].md5 = md5_stream_new();
	fixture->helpers = helpers_start(threads);
	fixture->pool = md5_pool_new();
}

static void submit(struct fixture *fixture, size_t i, size_t len)
{
	struct block *const block = memory_new(sizeof *block);
	block->job.bytes =
		span_slice(span_of(fixture->source, SOURCE_BYTES), fixture->ends[i], len);
	block->job.done = block_done;
	block->left = &fixture->left;
	fixture->ends[i] += block->job.bytes.len;
	atomic_fetch_add(&fixture->left, 1);
	md5_pool_submit(fixture->pool, fixture->helpers, &fixture->streams[i], &block->job);
}

static void fixture_close(struct fixture *fixture)
{
	for (size_t i = 0; i < STREAMS; i++)
		md5_pool_end(fixture->pool, fixture->helpers, &fixture->streams[i]);
	helpers_stop(fixture->helpers);
	ck_assert_int_eq(atomic_load(&fixture->left), 0);
	for (size_t i = 0; i < STREAMS; i++) {
		uint8_t actual[MD5_BYTES];
		uint8_t expected[MD5_BYTES];
		md5_stream_result(fixture->streams[i].md5, actual);
		md5_stream_add(fixture->streams[i].md5, span_of(fixture->source, fixture->ends[i]));
		md5_stream_result(fixture->streams[i].md5, expected);
		ck_assert_msg(memcmp(actual, expected, sizeof actual) == 0, "stream %zu", i);
		md5_stream_free(fixture->streams[i].md5);
	}
	md5_pool_free(fixture->pool);
	free(fixture);
}

/* More streams than lanes, blocks of many lengths, one helper and several. */
START_TEST(every_stream_gets_its_blocks_in_order)
{
	struct fixture *const fixture = memory_new(sizeof *fixture);
	fixture_open(fixture, _i == 0 ? 1 : 4);
	unsigned seed = 9;
	for (size_t block = 0; block < BLOCKS; block++)
		for (size_t i = 0; i < STREAMS; i++) {
			seed = seed * 1664525 + 1013904223;
			if (seed >> 30 != 0) /* some streams have fewer blocks */
				submit(fixture, i, (seed >> 8) % BLOCK_MAX_BYTES);
		}
	fixture_close(fixture);
}
END_TEST

struct writer {
	struct fixture *fixture;
	size_t from;
	pthread_t thread;
};

static void *writer_run(void *argument)
{
	const struct writer *const writer = argument;
	for (size_t block = 0; block < BLOCKS; block++)
		for (size_t i = writer->from; i < writer->from + STREAMS / 4; i++)
			submit(writer->fixture, i, 500 + 100 * block);
	return NULL;
}

START_TEST(writers_submit_side_by_side)
{
	struct fixture *const fixture = memory_new(sizeof *fixture);
	struct writer writers[4];
	fixture_open(fixture, 3);
	for (size_t i = 0; i < 4; i++) {
		writers[i] = (struct writer){.fixture = fixture, .from = i * STREAMS / 4};
		lock_thread_start(&writers[i].thread, "writer", writer_run, &writers[i]);
	}
	for (size_t i = 0; i < 4; i++)
		pthread_join(writers[i].thread, NULL);
	fixture_close(fixture);
}
END_TEST

static void wait_for_done(struct fixture *fixture)
{
	while (atomic_load(&fixture->left) > 0)
		usleep(200);
}

/* A lone stream is served at once. With many streams, some may wait for others, but no stream waits
 * long while it gets blocks. */
START_TEST(blocks_of_a_lone_or_busy_stream_do_not_wait)
{
	struct fixture *const fixture = memory_new(sizeof *fixture);
	fixture_open(fixture, 2);
	submit(fixture, 0, 5000);
	wait_for_done(fixture);
	for (size_t i = 0; i < 12; i++)
		submit(fixture, i, 700);
	for (size_t i = 0; i < MD5_POOL_PATIENCE; i++)
		submit(fixture, 7, 64);
	while (atomic_load(&fixture->left) >= MD5_POOL_PATIENCE)
		usleep(200);
	fixture_close(fixture);
}
END_TEST

START_TEST(ended_streams_do_not_wait)
{
	struct fixture *const fixture = memory_new(sizeof *fixture);
	fixture_open(fixture, 2);
	for (size_t i = 0; i < 12; i++)
		submit(fixture, i, 700);
	for (size_t i = 0; i < 12; i++)
		md5_pool_end(fixture->pool, fixture->helpers, &fixture->streams[i]);
	wait_for_done(fixture);
	submit(fixture, 3, 100); /* late */
	wait_for_done(fixture);
	fixture_close(fixture);
}
END_TEST

START_TEST(a_pool_without_work_ends)
{
	md5_pool_free(md5_pool_new());
	md5_pool_free(NULL);
}
END_TEST

Suite *test_md5_pool_suite(void);
Suite *test_md5_pool_suite(void)
{
	Suite *const suite = suite_create("md5_pool");
	TCase *const tcase = tcase_create("md5_pool");
	tcase_add_loop_test(tcase, every_stream_gets_its_blocks_in_order, 0, 2);
	tcase_add_test(tcase, writers_submit_side_by_side);
	tcase_add_test(tcase, blocks_of_a_lone_or_busy_stream_do_not_wait);
	tcase_add_test(tcase, ended_streams_do_not_wait);
	tcase_add_test(tcase, a_pool_without_work_ends);
	suite_add_tcase(suite, tcase);
	return suite;
}
