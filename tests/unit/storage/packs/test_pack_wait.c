/* Streams out of packs in a far place: this thread plays the reactor, so the place ends the test
 * when a read of it would wait. */
#include "storage/packs/pack_wait.h"

#include <errno.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "storage/packs/assemble.h"
#include "storage/packs/pack_damage.h"
#include "storage/packs/pack_store_parts.h"
#include "tests/unit/storage/pack_fixture.h"
#include "tests/unit/unit.h"

enum { LEN = 3 * 1024 * 1024 + 12345 };

static struct pack_fixture fixture;
static struct stored_stream stream;
static uint8_t *bytes;
static uint8_t *got;
static sem_t wakes;

/* Nothing is in memory, and nothing near. */
static void cool(void)
{
	far_fixture_play_reactor(&fixture.far, false);
	pack_fixture_store_shared(&fixture);
	pack_fixture_reopen(&fixture);
	far_fixture_cool(&fixture.far);
	far_fixture_play_reactor(&fixture.far, true);
}

static void set_up(void)
{
	const size_t third = LEN / FIXTURE_CONTENTS;
	sem_init(&wakes, 0, 0);
	pack_fixture_open(&fixture, PACK_FIXTURE_FAR, 600 * 1024);
	bytes = memory_new(LEN);
	got = memory_new(LEN);
	for (enum fixture_content content = 0; content < FIXTURE_CONTENTS; content++) {
		uint8_t *const piece = fixture_bytes(content, 11, third);
		memcpy(bytes + (size_t)content * third, piece, third);
		free(piece);
	}
	pack_fixture_put(&fixture, span_of(bytes, LEN), 3, &stream);
	ck_assert_uint_gt(stream.segment_count, 3);
	cool();
}

static void tear_down(void)
{
	far_fixture_play_reactor(&fixture.far, false);
	stored_stream_release(&stream);
	pack_fixture_close(&fixture);
	free(bytes);
	free(got);
	sem_destroy(&wakes);
}

static void wake(void *owner)
{
	ck_assert_ptr_eq(owner, &fixture);
	sem_post(&wakes);
}

static void await_wake(void)
{
	while (sem_wait(&wakes) != 0)
		ck_assert_int_eq(errno, EINTR);
}

static int wakes_left(void)
{
	int count;
	sem_getvalue(&wakes, &count);
	return count;
}

static struct body_source *open_range(uint64_t offset, uint64_t length)
{
	struct error err = {0};
	struct body_source *const source = assemble_open(
		fixture.store, stream.segments, stream.segment_count, offset, length, &err);
	ck_assert_msg(source != NULL, "%s", err.text);
	ck_assert_ptr_nonnull(source->let_wait);
	source->let_wait(source, wake, &fixture);
	return source;
}

/* Reads to the end, as a reactor does. Returns the bytes, or -1 when the source fails. */
static ptrdiff_t read_all(
	struct body_source *source, size_t piece, int *out_waits, struct error *err)
{
	size_t have = 0;
	ptrdiff_t len;
	*out_waits = 0;
	while ((len = source->read(
			source, got + have, piece < LEN - have ? piece : LEN - have, err)) != 0) {
		if (len == -1)
			return -1;
		if (len == SOURCE_WAIT) {
			await_wake();
			++*out_waits;
		}
		have += len > 0 ? (size_t)len : 0;
		if (have == LEN)
			break;
	}
	ck_assert_int_eq(wakes_left(), 0); /* one for each wait */
	return (ptrdiff_t)have;
}

START_TEST(ranges_come_in_without_blocking)
{
	static const size_t pieces[] = {1000, 65536, ASSEMBLE_BLOCK_BYTES, LEN};
	uint64_t state = 5;
	for (unsigned i = 0; i < 40; i++) {
		const uint64_t offset = i == 0 ? 0 : fixture_random(&state) % LEN;
		const uint64_t length =
			i == 0 ? LEN : 1 + fixture_random(&state) % 900000 % (LEN - offset);
		struct error err = {0};
		int waits;
		if (i % 4 == 0)
			cool();
		else if (i % 4 == 1)
			far_fixture_cool(&fixture.far); /* the indexes stay */
		struct body_source *const source = open_range(offset, length);
		const ptrdiff_t len = read_all(source, pieces[i % 4], &waits, &err);
		ck_assert_msg(len == (ptrdiff_t)length, "%s", err.text);
		ck_assert_mem_eq(got, bytes + offset, length);
		ck_assert(i % 4 > 1 || waits > 0);
		source->close(source);
	}
	ck_assert_int_gt(atomic_load(&fixture.far.fetches), 0);
}
END_TEST

/* Only the bytes are far then. */
static void load_packs(void)
{
	struct error err = {0};
	int waits;
	struct body_source *const source = open_range(0, LEN);
	ck_assert_int_eq(read_all(source, LEN, &waits, &err), LEN);
	source->close(source);
	far_fixture_cool(&fixture.far);
}

static void *let_go(void *unused)
{
	(void)unused;
	while (!far_fixture_let_go(&fixture.far))
		;
	return NULL;
}

/* What is near goes out before a wait begins; the wake comes from the thread that fetched. */
START_TEST(a_wait_lasts_until_the_bytes_are_there)
{
	struct error err = {0};
	ptrdiff_t len;
	pthread_t thread;
	size_t have = 0;
	load_packs();
	struct body_source *const source = open_range(0, LEN);
	atomic_store(&fixture.far.holds_back, true);
	for (int i = 0; i < 5; i++) {
		ck_assert_int_eq(source->read(source, got + have, LEN - have, &err), SOURCE_WAIT);
		ck_assert_int_eq(wakes_left(), 0);
		ck_assert_int_eq(pthread_create(&thread, NULL, let_go, NULL), 0);
		await_wake();
		pthread_join(thread, NULL);
		len = source->read(source, got + have, LEN - have, &err);
		ck_assert_msg(len > 0, "%zd %s", len, err.text);
		have += (size_t)len;
	}
	ck_assert_mem_eq(got, bytes, have);
	source->close(source);
}
END_TEST

START_TEST(a_fetch_that_fails_ends_the_stream)
{
	struct error err = {0};
	int waits;
	load_packs();
	struct body_source *const source = open_range(0, LEN);
	atomic_store(&fixture.far.holds_back, true);
	ck_assert_int_eq(source->read(source, got, 1000, &err), SOURCE_WAIT);
	atomic_store(&fixture.far.is_away, true);
	ck_assert(far_fixture_let_go(&fixture.far));
	ck_assert_int_eq(read_all(source, 1000, &waits, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_UPSTREAM);
	ck_assert_uint_eq(pack_damage_count(fixture.store->damage), 0);
	source->close(source);
}
END_TEST

/* An index that cannot be loaded fails the stream, and another one finds it later. */
START_TEST(a_pack_that_cannot_be_loaded_ends_the_stream)
{
	struct error err = {0};
	int waits;
	atomic_store(&fixture.far.is_away, true);
	struct body_source *const source = open_range(LEN / 2, 1000);
	ck_assert_int_eq(read_all(source, 1000, &waits, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_UPSTREAM);
	ck_assert_int_eq(waits, 1);
	source->close(source);
	atomic_store(&fixture.far.is_away, false);
	struct body_source *const again = open_range(LEN / 2, 1000);
	ck_assert_int_eq(read_all(again, 1000, &waits, &err), 1000);
	ck_assert_mem_eq(got, bytes + LEN / 2, 1000);
	again->close(again);
}
END_TEST

/* A wrong byte on the way is no damage: the record is read once more, here and by callers that may
 * block. What is wrong twice is. */
START_TEST(a_wrong_record_is_read_once_more)
{
	const uint64_t offset = _i % 2 == 0 ? 100 : LEN - 70000; /* raw, and encoded */
	struct error err = {0};
	int waits;
	for (int wrong = 1; wrong <= 2; wrong++) {
		atomic_store(&fixture.far.garbled, wrong);
		struct body_source *const source = open_range(offset, 60000);
		const ptrdiff_t len = read_all(source, 30000, &waits, &err);
		if (wrong == 1) {
			ck_assert_msg(len == 60000, "%s", err.text);
			ck_assert_mem_eq(got, bytes + offset, 60000);
			ck_assert_int_eq(atomic_load(&fixture.far.garbled), 0);
		} else {
			ck_assert_int_eq(len, -1);
			ck_assert_int_eq(err.kind, ERROR_CORRUPT);
		}
		ck_assert_uint_eq(pack_damage_count(fixture.store->damage), wrong - 1);
		source->close(source);
		far_fixture_cool(&fixture.far);
	}
}
END_TEST

START_TEST(callers_that_may_block_do)
{
	struct error err = {0};
	far_fixture_play_reactor(&fixture.far, false);
	atomic_store(&fixture.far.garbled, 1);
	pack_fixture_expect_range(&fixture, &stream, span_of(bytes, LEN), 1000, LEN - 1000, 65536);
	ck_assert_int_eq(atomic_load(&fixture.far.garbled), 0);
	ck_assert_int_eq(atomic_load(&fixture.far.fetches), 0);
	for (size_t i = 0; i < stream.segment_count; i++) {
		const struct segment *const segment = &stream.segments[i];
		const struct pack_run run = {segment->pack, segment->first, segment->count};
		atomic_store(&fixture.far.garbled, 1);
		ck_assert_msg(
			pack_store_check_records(fixture.store, &run, &err) == 0, "%s", err.text);
	}
	ck_assert_uint_eq(pack_damage_count(fixture.store->damage), 0);
}
END_TEST

Suite *test_pack_wait_suite(void);
Suite *test_pack_wait_suite(void)
{
	Suite *const suite = suite_create("pack_wait");
	TCase *const tests = tcase_create("pack_wait");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_set_timeout(tests, 60);
	tcase_add_test(tests, ranges_come_in_without_blocking);
	tcase_add_test(tests, a_wait_lasts_until_the_bytes_are_there);
	tcase_add_test(tests, a_fetch_that_fails_ends_the_stream);
	tcase_add_test(tests, a_pack_that_cannot_be_loaded_ends_the_stream);
	tcase_add_loop_test(tests, a_wrong_record_is_read_once_more, 0, 2);
	tcase_add_test(tests, callers_that_may_block_do);
	suite_add_tcase(suite, tests);
	return suite;
}
