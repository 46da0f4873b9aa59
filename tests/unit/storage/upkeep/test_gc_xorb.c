/* A promised xorb stays as it is for the time of the promise, whenever that was made. Then it goes
 * like anything else. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "chunker/chunk_hash.h"
#include "storage/core/pack_row.h"
#include "storage/core/store.h"
#include "storage/open/store_open.h"
#include "storage/packs/pack_store_parts.h"
#include "storage/upkeep/gc.h"
#include "storage/upkeep/gc_pack.h"
#include "storage/xet/xorb_promise.h"
#include "tests/unit/storage/store_fixture.h"
#include "tests/unit/storage/xorb_fixture.h"
#include "tests/unit/unit.h"

Suite *test_gc_xorb_suite(void);

enum { HOUR_MS = 3600 * 1000, SMALL_XORBS = 20, SMALL_OBJECTS = 1000 };

static struct store_fixture fixture;
static int64_t promise_ms;

static const struct xorb_sample large = {.seed = 1, .chunks = 6, .chunk_bytes = 100000};

static struct xorb_sample small(unsigned number)
{
	return (struct xorb_sample){.seed = 100 + number, .chunks = 2, .chunk_bytes = 10000};
}

static void open_store(void)
{
	struct error err = {0};
	const struct store_options options = {.folder = fixture.folder,
		.clock = &fixture.clock.source,
		.pack_max_bytes = 1024 * 1024,
		.xet = {.upload_promise_ms = promise_ms}};
	fixture.store = store_open(&options, &err);
	ck_assert_msg(fixture.store != NULL, "%s", err.text);
	fixture_await_start(fixture.store);
}

/* Also seals the shared pack. */
static void reopen(int64_t new_promise_ms)
{
	promise_ms = new_promise_ms;
	store_close(fixture.store);
	open_store();
}

static void setup(void)
{
	struct error err = {0};
	store_fixture_open(&fixture);
	reopen(HOUR_MS);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "bucket", "main", &err), 0);
}

static void teardown(void)
{
	store_fixture_close(&fixture);
}

static bool send(const struct xorb_sample *sample)
{
	struct error err = {0};
	bool inserted = false;
	ck_assert_msg(xorb_sample_put(fixture.store, sample, &inserted, &err) == 0, "%s", err.text);
	return inserted;
}

static struct gc_report collect(void)
{
	struct error err = {0};
	struct gc_request request = {0};
	ck_assert_msg(gc_run(store_parts(fixture.store)->gc, &request, &err) == 0, "%s", err.text);
	return request.report;
}

static int64_t xorb_rows(void)
{
	return fixture_count(fixture.store, "SELECT COUNT(*) FROM xorbs");
}

static void put_object(const char *key, uint64_t seed)
{
	struct error err = {0};
	uint8_t *const bytes = fixture_noise(8000, seed);
	ck_assert_msg(fixture_put(fixture.store, "bucket", key, span_of(bytes, 8000), &err) == 0,
		"%s", err.text);
	free(bytes);
}

static bool object_is_there(const char *key, uint64_t seed)
{
	uint8_t *const bytes = fixture_noise(8000, seed);
	const bool result = fixture_holds(&fixture, "bucket", key, span_of(bytes, 8000));
	free(bytes);
	return result;
}

START_TEST(an_unused_xorb_goes_when_its_promise_is_over)
{
	ck_assert(send(&large));
	fixture.clock.now_ms += HOUR_MS - 1;
	const struct gc_report kept = collect();
	ck_assert_uint_eq(kept.packs_deleted, 0);
	ck_assert_uint_ge(kept.bytes_promised, large.chunks * large.chunk_bytes);
	ck_assert(xorb_sample_is_there(fixture.store, &large));
	ck_assert(!send(&large)); /* promised once more, from now on */
	fixture.clock.now_ms += HOUR_MS - 1;
	ck_assert_uint_eq(collect().packs_deleted, 0);
	fixture.clock.now_ms += 1;
	const struct gc_report freed = collect();
	ck_assert_uint_eq(freed.packs_deleted, 1);
	ck_assert_uint_eq(freed.bytes_promised, 0);
	ck_assert(!xorb_sample_is_there(fixture.store, &large));
	ck_assert_int_eq(xorb_rows(), 0);
	ck_assert(send(&large));
	ck_assert(xorb_sample_is_there(fixture.store, &large));
}
END_TEST

START_TEST(without_promises_space_comes_back_at_once)
{
	reopen(0);
	ck_assert(send(&large));
	ck_assert_uint_eq(collect().packs_deleted, 1);
	ck_assert_int_eq(xorb_rows(), 0);
}
END_TEST

/* Object "a" and many xorbs lie in one pack; the object keeps it. */
static void fill_shared_pack(void)
{
	put_object("a", 7);
	for (unsigned i = 0; i < SMALL_XORBS; i++) {
		const struct xorb_sample sample = small(i);
		ck_assert(send(&sample));
	}
	reopen(promise_ms);
}

START_TEST(a_promised_xorb_stays_whole_while_the_rest_of_its_pack_goes)
{
	fill_shared_pack();
	const struct xorb_sample last = small(SMALL_XORBS - 1);
	fixture.clock.now_ms += HOUR_MS / 2;
	ck_assert(!send(&last));
	const struct gc_report promised = collect();
	ck_assert_uint_eq(promised.packs_compacted + promised.packs_deleted, 0);
	ck_assert_int_eq(xorb_rows(), SMALL_XORBS);
	fixture.clock.now_ms += HOUR_MS / 2;
	ck_assert_uint_eq(collect().packs_compacted, 1);
	ck_assert_int_eq(xorb_rows(), 1);
	ck_assert(object_is_there("a", 7));
	ck_assert(xorb_sample_is_there(fixture.store, &last));
	ck_assert(!send(&last));
	reopen(promise_ms);
	ck_assert(xorb_sample_is_there(fixture.store, &last));
	fixture.clock.now_ms += HOUR_MS;
	ck_assert_uint_eq(collect().packs_compacted, 1);
	ck_assert_int_eq(xorb_rows(), 0);
	ck_assert(object_is_there("a", 7));
	ck_assert(send(&last));
	ck_assert(xorb_sample_is_there(fixture.store, &last));
}
END_TEST

static int64_t pack_bytes(void)
{
	return fixture_count(fixture.store, "SELECT sum(length) FROM packs");
}

/* Both lie in the pack that small uploads share. */
START_TEST(small_objects_give_their_space_back_beside_promised_xorbs)
{
	struct error err = {0};
	char key[16];
	for (unsigned i = 0; i < SMALL_OBJECTS; i++) {
		const struct xorb_sample sample = small(i / (SMALL_OBJECTS / SMALL_XORBS));
		snprintf(key, sizeof key, "k%u", i);
		put_object(key, 1000 + 17 * i);
		if (i % (SMALL_OBJECTS / SMALL_XORBS) == 0)
			ck_assert(send(&sample));
	}
	const int64_t before = pack_bytes();
	for (unsigned i = 0; i < SMALL_OBJECTS; i++) {
		snprintf(key, sizeof key, "k%u", i);
		ck_assert_int_eq(fixture_delete(fixture.store, "bucket", key, NULL, &err), 0);
	}
	const struct gc_report report = collect();
	ck_assert_int_ge((int64_t)report.bytes_freed, SMALL_OBJECTS * 8000);
	ck_assert_int_eq(pack_bytes(), before - (int64_t)report.bytes_freed);
	ck_assert_int_eq(xorb_rows(), SMALL_XORBS);
	for (unsigned i = 0; i < SMALL_XORBS; i++) {
		const struct xorb_sample sample = small(i);
		ck_assert(xorb_sample_is_there(fixture.store, &sample));
	}
}
END_TEST

/* The run of chunks that is the object's only segment, as an answer about a chunk would name it. */
static struct xorb_place place_of_object(unsigned number)
{
	static const char *const sql[2][3] = {
		/* statements are known by their addresses */
		{"SELECT pack FROM segments WHERE part_set = -1",
			"SELECT first FROM segments WHERE part_set = -1",
			"SELECT count FROM segments WHERE part_set = -1"},
		{"SELECT pack FROM segments WHERE part_set = -2",
			"SELECT first FROM segments WHERE part_set = -2",
			"SELECT count FROM segments WHERE part_set = -2"},
	};
	struct error err = {0};
	struct pack_record record;
	struct xorb_place place = {.hash = {.bytes = {(uint8_t)(number + 1)}}};
	const int64_t pack = fixture_count(fixture.store, sql[number][0]);
	place.first = (uint32_t)fixture_count(fixture.store, sql[number][1]);
	place.count = (uint32_t)fixture_count(fixture.store, sql[number][2]);
	struct db *const reader = store_reader_take(fixture.store, &err);
	ck_assert_int_eq(pack_row_find(reader, pack, &record, &err), 1);
	store_reader_give(fixture.store, reader);
	place.pack = record.id;
	return place;
}

static int promise(const struct xorb_place *places, size_t count, int64_t until_ms)
{
	struct error err = {0};
	struct call *const made = xorb_promise_call(fixture.store, places, count, until_ms);
	const int result = call_run(made, &err);
	ck_assert(result == 0 || err.kind == ERROR_NOT_FOUND);
	call_free(made);
	return result;
}

START_TEST(compaction_forgets_only_xorbs_that_lack_chunks)
{
	struct error err = {0};
	struct xorb xorb;
	for (unsigned i = 0; i < SMALL_XORBS; i++) {
		char key[16];
		snprintf(key, sizeof key, "k%u", i);
		put_object(key, 1000 + 17 * i);
	}
	const struct xorb_place places[] = {place_of_object(0), place_of_object(1)};
	reopen(promise_ms);
	ck_assert_int_eq(promise(places, 1, fixture.clock.now_ms + 3 * HOUR_MS), 0);
	ck_assert_int_eq(promise(&places[1], 1, fixture.clock.now_ms + HOUR_MS), 0);
	for (unsigned i = 1; i < SMALL_XORBS; i++) {
		char key[16];
		snprintf(key, sizeof key, "k%u", i);
		ck_assert_int_eq(fixture_delete(fixture.store, "bucket", key, NULL, &err), 0);
	}
	fixture.clock.now_ms += HOUR_MS;
	ck_assert_uint_eq(collect().packs_compacted, 1);
	uint64_t length;
	ck_assert_int_eq(xorb_find(fixture.store, &places[0].hash, &xorb, &err), 0);
	ck_assert_int_eq(xorb_length(fixture.store, &xorb, &length, &err), 0);
	ck_assert_int_eq(xorb_find(fixture.store, &places[1].hash, &xorb, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NOT_FOUND);
	ck_assert_int_eq(promise(&places[0], 1, fixture.clock.now_ms + HOUR_MS), 0);
	/* its chunks are gone */
	ck_assert_int_eq(promise(&places[1], 1, fixture.clock.now_ms + HOUR_MS), -1);
	ck_assert_int_eq(xorb_rows(), 1);
}
END_TEST

static bool go_on(void *owner, size_t bytes)
{
	(void)owner, (void)bytes;
	return true;
}

static void rest(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
}

/* A chunk of a pack that stays is found again, so that new objects can share it. */
static void await_found(const struct xorb_sample *sample)
{
	struct chunk_place place;
	if (sample == NULL)
		return;
	uint8_t *const bytes = xorb_sample_chunk(sample, 0);
	const struct chunk_id id = chunk_hash(span_of(bytes, sample->chunk_bytes));
	free(bytes);
	for (int i = 0; i < 200 && !chunk_index_find(store_chunk_index(fixture.store), &id, &place);
		i++)
		rest();
	ck_assert(chunk_index_find(store_chunk_index(fixture.store), &id, &place));
}

/* The loop number says at which stage the promise is made, and whether gc would delete or compact
 * the pack. */
START_TEST(a_promise_made_while_gc_works_is_kept)
{
	const enum gc_stage stage = (enum gc_stage)(_i / 2);
	const bool compacts = _i % 2 == 1;
	const struct xorb_sample sample = compacts ? small(3) : large;
	struct gc_report report = {0};
	struct error err = {0};
	struct xorb held;
	if (compacts)
		fill_shared_pack();
	else
		send(&large);
	fixture.clock.now_ms += HOUR_MS;
	const struct gc_work work = {.store = fixture.store,
		.report = &report,
		.live_percent = 90,
		.is_asked = true,
		.pace.spend = go_on};
	struct gc_pack *pack = NULL;
	for (int i = 0; i < 100 && pack == NULL; i++, rest())
		pack = gc_pack_look(&work, 1);
	ck_assert_ptr_nonnull(pack);
	for (int i = 0; i < 500 && pack->stage != stage; i++)
		if (!gc_pack_advance(&work, pack))
			rest();
	ck_assert_int_eq(pack->stage, stage);
	ck_assert_int_eq(pack->deletes, !compacts);
	ck_assert(!send(&sample));
	/* the client that has the promise is not refused either, though gc works on the pack */
	const struct chunk_id hash = xorb_sample_hash(&sample);
	ck_assert_int_eq(xorb_refer(fixture.store, &hash, &held, &err), 0);
	pack_store_unrefer(store_packs(fixture.store), &held.pack);
	for (int i = 0; i < 500 && pack->stage != GC_DONE; i++)
		if (!gc_pack_advance(&work, pack))
			rest();
	ck_assert_int_eq(pack->stage, GC_DONE);
	gc_pack_close(&work, pack);
	ck_assert_uint_eq(report.packs_deleted, 0);
	/* the promise came in time to be kept, or it stops the move */
	ck_assert_uint_eq(report.packs_compacted, compacts && stage <= GC_VIEW);
	ck_assert(xorb_sample_is_there(fixture.store, &sample));
	ck_assert_int_eq(
		fixture_count(fixture.store,
			"SELECT COUNT(*) FROM packs WHERE state = 1 AND condemned_ms IS NULL"),
		1);
	await_found(compacts ? NULL : &sample);
	reopen(promise_ms);
	ck_assert(xorb_sample_is_there(fixture.store, &sample));
	fixture.clock.now_ms += HOUR_MS;
	report = collect();
	ck_assert_uint_eq(compacts ? report.packs_compacted : report.packs_deleted, 1);
	ck_assert(!compacts || object_is_there("a", 7));
}
END_TEST

/* A row that names chunks that the pack does not have: gc does nothing with the pack. */
START_TEST(a_damaged_row_stops_its_pack)
{
	struct error err = {0};
	fill_shared_pack();
	ck_assert_int_eq(
		fixture_run(fixture.store,
			"UPDATE xorbs SET count = 8000 WHERE first = (SELECT max(first) FROM xorbs)",
			&err),
		0);
	const struct gc_report promised = collect();
	ck_assert_uint_eq(promised.packs, 0);
	ck_assert_uint_eq(promised.packs_compacted + promised.packs_deleted, 0);
	ck_assert(object_is_there("a", 7));
	ck_assert_int_eq(fixture_run(fixture.store, "UPDATE xorbs SET count = 2", &err), 0);
	ck_assert_uint_eq(collect().packs, 1);
}
END_TEST

/* A pack that was condemned when the process ended, and of which a xorb was promised to a client
 * afterwards. */
START_TEST(a_condemned_pack_is_spared_for_a_promise)
{
	struct error err = {0};
	send(&large);
	ck_assert_int_eq(
		fixture_run(fixture.store, "UPDATE packs SET state = 2, condemned_ms = 1", &err),
		0);
	reopen(promise_ms);
	ck_assert(!send(&large));
	ck_assert_uint_eq(collect().packs_deleted, 0);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT state FROM packs"), 1);
	ck_assert(xorb_sample_is_there(fixture.store, &large));
}
END_TEST

static atomic_bool stops;

static void *collect_always(void *argument)
{
	(void)argument;
	while (!atomic_load(&stops))
		collect();
	return NULL;
}

/* Promises run out and are renewed all the time, while gc makes one round after another. Everything
 * that was acknowledged is there. */
START_TEST(uploads_and_gc_at_once)
{
	pthread_t thread;
	ck_assert_int_eq(pthread_create(&thread, NULL, collect_always, NULL), 0);
	for (unsigned i = 0; i < 60; i++) {
		const struct xorb_sample sample = i % 3 == 0 ? large : small(i % 4);
		send(&sample);
		ck_assert_msg(xorb_sample_is_there(fixture.store, &sample), "upload %u", i);
		if (i % 2 == 1)
			fixture.clock.now_ms += HOUR_MS + 1;
	}
	atomic_store(&stops, true);
	pthread_join(thread, NULL);
	atomic_store(&stops, false);
}
END_TEST

Suite *test_gc_xorb_suite(void)
{
	Suite *const suite = suite_create("gc_xorb");
	TCase *const all = tcase_create("all");
	tcase_add_checked_fixture(all, setup, teardown);
	tcase_set_timeout(all, 120);
	tcase_add_test(all, an_unused_xorb_goes_when_its_promise_is_over);
	tcase_add_test(all, without_promises_space_comes_back_at_once);
	tcase_add_test(all, a_promised_xorb_stays_whole_while_the_rest_of_its_pack_goes);
	tcase_add_test(all, small_objects_give_their_space_back_beside_promised_xorbs);
	tcase_add_test(all, compaction_forgets_only_xorbs_that_lack_chunks);
	tcase_add_loop_test(all, a_promise_made_while_gc_works_is_kept, 2 * GC_BEGIN, 2 * GC_DONE);
	tcase_add_test(all, a_damaged_row_stops_its_pack);
	tcase_add_test(all, a_condemned_pack_is_spared_for_a_promise);
	tcase_add_test(all, uploads_and_gc_at_once);
	suite_add_tcase(suite, all);
	return suite;
}
