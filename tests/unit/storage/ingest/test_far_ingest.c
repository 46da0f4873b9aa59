/* Content that a far place has already: this thread plays the reactor, so the place ends the test
 * when a write would wait for it. */
#include <stdlib.h>

#include "tests/unit/storage/pack_fixture.h"
#include "tests/unit/unit.h"

enum { LEN = 3 * 1024 * 1024, SHORT = 200000, PIECE = 30000, LOST_MAX = 700 * 1024 };

static struct pack_fixture fixture;
static struct stored_stream stream;
static uint8_t *bytes;

static void set_up(void)
{
	pack_fixture_open(&fixture, PACK_FIXTURE_FAR, 1024 * 1024);
	bytes = fixture_bytes(FIXTURE_RANDOM, 3, LEN);
	pack_fixture_put(&fixture, span_of(bytes, LEN), 3, &stream);
	stored_stream_release(&stream);
	pack_fixture_store_shared(&fixture);
	pack_fixture_settle(&fixture); /* the chunk index knows the packs */
	pack_fixture_reopen(&fixture);
	far_fixture_cool(&fixture.far);
	far_fixture_play_reactor(&fixture.far, true);
}

static void tear_down(void)
{
	far_fixture_play_reactor(&fixture.far, false);
	stored_stream_release(&stream);
	free(bytes);
	pack_fixture_close(&fixture);
}

/* Puts the bytes again, in pieces as a connection gives them. Gives how many were stored. */
static int64_t put_again(size_t len)
{
	const int64_t before = metrics_get(fixture.metrics, METRIC_BYTES_STORED);
	struct error err = {0};
	struct pack_writer_end end;
	pack_writer_end_init(&end);
	struct ingest *const ingest = pack_fixture_ingest(&fixture, &end, false);
	for (size_t at = 0; at < len; at += PIECE)
		ck_assert_msg(pack_fixture_write(ingest, &end,
				      span_slice(span_of(bytes, len), at, PIECE), 0, &err) == 0,
			"%s", err.text);
	ck_assert_msg(pack_fixture_finish(ingest, &end, &err) == 0, "%s", err.text);
	ck_assert_msg(pack_fixture_commit(&fixture, ingest, &err) == 0, "%s", err.text);
	ingest_free(ingest);
	pack_fixture_settle(&fixture);
	pack_writer_end_release(&end);
	return metrics_get(fixture.metrics, METRIC_BYTES_STORED) - before;
}

/* The indexes of the packs are not in memory. Of each pack about one chunk is stored again, and
 * what follows it is found. */
START_TEST(repeats_are_found_without_blocking)
{
	ck_assert_int_lt(put_again(LEN), LOST_MAX);
}
END_TEST

/* What cannot be looked up is stored again. */
START_TEST(repeats_are_stored_while_indexes_cannot_be_loaded)
{
	atomic_store(&fixture.far.is_away, true);
	ck_assert_int_ge(put_again(SHORT), SHORT);
}
END_TEST

Suite *test_far_ingest_suite(void);
Suite *test_far_ingest_suite(void)
{
	Suite *const suite = suite_create("far_ingest");
	TCase *const tests = tcase_create("far_ingest");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_set_timeout(tests, 60);
	tcase_add_test(tests, repeats_are_found_without_blocking);
	tcase_add_test(tests, repeats_are_stored_while_indexes_cannot_be_loaded);
	suite_add_tcase(suite, tests);
	return suite;
}
