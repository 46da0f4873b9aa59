#include "storage/xet/xorb_put.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "chunker/chunk_hash.h"
#include "storage/core/store.h"
#include "storage/open/store_open.h"
#include "storage/packs/pack_store_parts.h"
#include "storage/xet/xorb_promise.h"
#include "storage/xet/xorb_row.h"
#include "tests/unit/storage/store_fixture.h"
#include "tests/unit/storage/xorb_fixture.h"
#include "tests/unit/unit.h"

Suite *test_xorb_put_suite(void);

enum { HOUR_MS = 3600 * 1000, UPLOAD_PROMISE_MS = 5 * HOUR_MS };

static struct store_fixture fixture;

/* One as small as inline bytes, one that goes into a shared pack, one just below and one just above
 * the limit for that, and one of several megabytes; with each encoding. */
static const struct xorb_sample samples[] = {
	{.seed = 1, .chunks = 1, .chunk_bytes = 12},
	{.seed = 2, .chunks = 3, .chunk_bytes = 20000},
	{.seed = 3, .chunks = 2, .chunk_bytes = 131064},
	{.seed = 4, .chunks = 2, .chunk_bytes = 131065},
	{.seed = 5, .chunks = 40, .chunk_bytes = 100001},
	{.seed = 6, .chunks = 20, .chunk_bytes = 70000, .codec = CODEC_LZ4},
	{.seed = 7, .chunks = 20, .chunk_bytes = 70001, .codec = CODEC_BG4_LZ4},
	{.seed = 8, .chunks = 5000, .chunk_bytes = 300},
	{.seed = 9, .chunks = 3, .chunk_bytes = 70000, .codec = CODEC_ZSTD},
};
enum { SAMPLES = sizeof(samples) / sizeof(*samples) };

static void open_store(void)
{
	struct error err = {0};
	const struct store_options options = {.folder = fixture.folder,
		.clock = &fixture.clock.source,
		.pack_max_bytes = 1024 * 1024,
		.xet = {.upload_promise_ms = UPLOAD_PROMISE_MS}};
	fixture.store = store_open(&options, &err);
	ck_assert_msg(fixture.store != NULL, "%s", err.text);
	fixture_await_start(fixture.store);
}

static void reopen(void)
{
	store_close(fixture.store);
	open_store();
}

static void setup(void)
{
	store_fixture_open(&fixture);
	reopen();
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

static int64_t count(const char *sql)
{
	return fixture_count(fixture.store, sql);
}

static int64_t pack_files(void)
{
	return fixture_pack_files(&fixture, "-name '*.pack'");
}

/* Waits for the helper that removes the pack of an aborted upload. */
static void wait_for_pack_files(int64_t expected)
{
	for (int i = 0; i < 500 && pack_files() != expected; i++)
		nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
	ck_assert_int_eq(pack_files(), expected);
}

START_TEST(a_xorb_is_kept_as_it_lies)
{
	const struct xorb_sample *const sample = &samples[_i];
	struct error err = {0};
	struct xorb xorb;
	uint64_t length;
	struct buffer body;
	const struct chunk_id hash = xorb_sample_write(sample, &body);
	ck_assert(send(sample));
	ck_assert(xorb_sample_is_there(fixture.store, sample));
	ck_assert_int_eq(xorb_find(fixture.store, &hash, &xorb, &err), 0);
	ck_assert_int_eq(xorb.promised_ms, fixture.clock.now_ms + UPLOAD_PROMISE_MS);
	ck_assert_int_eq(xorb_length(fixture.store, &xorb, &length, &err), 0);
	if (codec_private(sample->codec))
		ck_assert_uint_eq(length, sample->chunks * (8 + sample->chunk_bytes));
	else
		ck_assert_uint_eq(length, body.len); /* not encoded anew */
	ck_assert_int_eq(pack_files(), 1);
	ck_assert_int_eq(count("SELECT state FROM packs"), body.len <= 256 * 1024 ? 0 : 1);
	reopen();
	ck_assert(xorb_sample_is_there(fixture.store, sample));
	buffer_release(&body);
}
END_TEST

/* Valid frames of 1000 x 'a': with an empty block, and with the checksum of a block. */
START_TEST(what_clients_read_otherwise_is_stored_plain)
{
	static const uint8_t head[] = {
		0, 0x21, 0, 0, CODEC_LZ4, 0xe8, 3, 0, 0x04, 0x22, 0x4d, 0x18};
	static const uint8_t with_empty[] = {0x60, 0x40, 0x82, 0, 0, 0, 0x80, 14, 0, 0, 0, 0x1f,
		0x61, 1, 0, 0xff, 0xff, 0xff, 0xd2, 0x50, 0x61, 0x61, 0x61, 0x61, 0x61, 0, 0, 0, 0};
	static const uint8_t with_sum[] = {0x70, 0x40, 0xad, 14, 0, 0, 0, 0x1f, 0x61, 1, 0, 0xff,
		0xff, 0xff, 0xd2, 0x50, 0x61, 0x61, 0x61, 0x61, 0x61, 0x5a, 0x0a, 0x6b, 0x03, 0, 0,
		0, 0};
	struct error err = {0};
	struct buffer body;
	struct xorb xorb;
	uint64_t length;
	size_t len;
	bool inserted;
	uint8_t content[1000];
	uint8_t *const read = memory_new(CHUNK_MAX_BYTES);
	memset(content, 'a', sizeof(content));
	const struct chunk_id hash = chunk_hash(span_of(content, sizeof(content)));
	buffer_init(&body, 100);
	buffer_add(&body, head, sizeof(head));
	buffer_add(&body, _i == 0 ? with_empty : with_sum, sizeof(with_sum));
	ck_assert_msg(xorb_fixture_put(fixture.store, &hash, buffer_span(&body), false, &inserted,
			      &err) == 0 &&
			inserted,
		"%s", err.text);
	ck_assert_int_eq(xorb_find(fixture.store, &hash, &xorb, &err), 0);
	ck_assert_int_eq(xorb_length(fixture.store, &xorb, &length, &err), 0);
	ck_assert_uint_eq(length, 8 + sizeof(content));
	const struct chunk_place place = {.pack = xorb.pack, .chunk = xorb.first};
	ck_assert_int_eq(
		pack_store_read_chunk(store_packs(fixture.store), &place, NULL, read, &len, &err),
		0);
	ck_assert_uint_eq(len, sizeof(content));
	ck_assert_mem_eq(read, content, sizeof(content));
	ck_assert(xorb_fixture_put(
			  fixture.store, &hash, buffer_span(&body), false, &inserted, &err) == 0 &&
		!inserted);
	buffer_release(&body);
	free(read);
}
END_TEST

START_TEST(private_codecs_are_for_who_may)
{
	const struct xorb_sample *const sample = &samples[SAMPLES - 1];
	struct error err = {0};
	struct buffer body;
	bool inserted;
	const struct chunk_id hash = xorb_sample_write(sample, &body);
	ck_assert_int_eq(
		xorb_fixture_put(fixture.store, &hash, buffer_span(&body), false, &inserted, &err),
		-1);
	ck_assert_int_eq(err.kind, ERROR_INVALID);
	ck_assert(!xorb_sample_is_there(fixture.store, sample));
	buffer_release(&body);
}
END_TEST

/* The same for a stored xorb, whose promise is then not renewed. */
static void expect_refused(const struct chunk_id *hash, struct span body)
{
	struct error err = {0};
	bool inserted;
	const int64_t promised = count("SELECT COALESCE(SUM(promised_ms), 0) FROM xorbs");
	ck_assert_int_eq(xorb_fixture_put(fixture.store, hash, body, false, &inserted, &err), -1);
	ck_assert_msg(err.kind == ERROR_INVALID, "%s", err.text);
	ck_assert_int_eq(count("SELECT COALESCE(SUM(promised_ms), 0) FROM xorbs"), promised);
}

START_TEST(what_is_not_the_xorb_is_refused_and_not_kept)
{
	for (size_t i = 0; i < SAMPLES - 1; i++) {
		struct buffer body, other;
		const struct chunk_id hash = xorb_sample_write(&samples[i], &body);
		const struct chunk_id other_hash =
			xorb_sample_write(&samples[(i + 1) % (SAMPLES - 1)], &other);
		expect_refused(&other_hash, buffer_span(&body));
		expect_refused(&hash, span_slice(buffer_span(&body), 0, body.len - 1));
		expect_refused(&hash, span_slice(buffer_span(&body), 1, body.len));
		expect_refused(&hash, span_of(NULL, 0));
		buffer_add_byte(&body, 0);
		expect_refused(&hash, buffer_span(&body));
		buffer_release(&other);
		buffer_release(&body);
	}
	wait_for_pack_files(0);
	ck_assert_int_eq(
		count("SELECT COUNT(*) FROM xorbs") + count("SELECT COUNT(*) FROM packs"), 0);
	ck_assert(send(&samples[1]) && send(&samples[4]));
	fixture.clock.now_ms += HOUR_MS;
	for (size_t i = 1; i <= 4; i += 3) {
		struct buffer body;
		const struct chunk_id hash = xorb_sample_write(&samples[i], &body);
		expect_refused(&hash, span_slice(buffer_span(&body), 0, body.len - 1));
		body.data[body.len - 1] ^= 1;
		expect_refused(&hash, buffer_span(&body));
		buffer_release(&body);
	}
}
END_TEST

START_TEST(an_upload_that_ends_early_leaves_nothing)
{
	struct error err = {0};
	struct buffer body;
	const struct chunk_id hash = xorb_sample_write(&samples[4], &body);
	const struct xorb_put_params params = {.hash = hash};
	struct xorb_put *const put = xorb_put_open(fixture.store, &params, &err);
	for (size_t at = 0; at < 3000000; at += 50000)
		while (xorb_put_write(put, span_slice(buffer_span(&body), at, 50000), &err) ==
			SINK_WAIT)
			nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	call_free(xorb_put_call(put));
	wait_for_pack_files(0);
	ck_assert_int_eq(count("SELECT COUNT(*) FROM xorbs"), 0);
	buffer_release(&body);
}
END_TEST

START_TEST(a_repeat_renews_the_promise_and_stores_nothing)
{
	for (size_t i = 1; i <= 4; i += 3) {
		const struct chunk_id hash = xorb_sample_hash(&samples[i]);
		struct error err = {0};
		struct xorb first, second;
		ck_assert(send(&samples[i]));
		ck_assert_int_eq(xorb_find(fixture.store, &hash, &first, &err), 0);
		const int64_t files = pack_files();
		fixture.clock.now_ms += HOUR_MS;
		ck_assert(!send(&samples[i]));
		ck_assert_int_eq(xorb_find(fixture.store, &hash, &second, &err), 0);
		ck_assert_int_eq(second.promised_ms, first.promised_ms + HOUR_MS);
		ck_assert_mem_eq(&second.pack, &first.pack, sizeof(first.pack));
		ck_assert_uint_eq(second.first, first.first);
		ck_assert_int_eq(pack_files(), files);
		ck_assert(xorb_sample_is_there(fixture.store, &samples[i]));
	}
}
END_TEST

struct twin {
	pthread_t thread;
	const struct xorb_sample *sample;
	bool inserted;
	struct error err;
	int result;
};

static void *send_twin(void *argument)
{
	struct twin *const twin = argument;
	twin->result = xorb_sample_put(fixture.store, twin->sample, &twin->inserted, &twin->err);
	return NULL;
}

START_TEST(of_uploads_at_a_time_one_is_kept)
{
	enum { TWINS = 6 };
	for (size_t i = 1; i <= 4; i += 3) {
		struct twin twins[TWINS] = {0};
		unsigned inserted = 0;
		for (size_t k = 0; k < TWINS; k++) {
			twins[k].sample = &samples[i];
			ck_assert_int_eq(
				pthread_create(&twins[k].thread, NULL, send_twin, &twins[k]), 0);
		}
		for (size_t k = 0; k < TWINS; k++) {
			pthread_join(twins[k].thread, NULL);
			ck_assert_msg(twins[k].result == 0, "%s", twins[k].err.text);
			inserted += twins[k].inserted;
		}
		ck_assert_uint_eq(inserted, 1);
		ck_assert(xorb_sample_is_there(fixture.store, &samples[i]));
		wait_for_pack_files(count("SELECT COUNT(*) FROM packs"));
	}
	ck_assert_int_eq(count("SELECT COUNT(*) FROM xorbs"), 2);
	ck_assert_int_eq(count("SELECT COUNT(*) FROM packs"), 2);
}
END_TEST

/* A chunk that came in a xorb is found by an upload of an object with the same bytes. */
START_TEST(objects_share_the_chunks_of_xorbs)
{
	static const struct xorb_sample small = {.seed = 20, .chunks = 1, .chunk_bytes = 8000};
	struct error err = {0};
	struct buffer body;
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "bucket", "main", &err), 0);
	xorb_sample_write(&small, &body);
	ck_assert(send(&small));
	const int64_t before = count("SELECT SUM(length) FROM packs");
	ck_assert_int_eq(fixture_put(fixture.store, "bucket", "key",
				 span_slice(buffer_span(&body), 8, 8000), &err),
		0);
	ck_assert_int_eq(count("SELECT SUM(length) FROM packs"), before);
	ck_assert(
		fixture_holds(&fixture, "bucket", "key", span_slice(buffer_span(&body), 8, 8000)));
	buffer_release(&body);
}
END_TEST

static int promise(
	const struct xorb_place *places, size_t places_count, int64_t until_ms, struct error *err)
{
	struct call *const made = xorb_promise_call(fixture.store, places, places_count, until_ms);
	const int result = call_run(made, err);
	call_free(made);
	return result;
}

START_TEST(promises_are_raised_never_lowered)
{
	const struct chunk_id hash = xorb_sample_hash(&samples[4]);
	struct error err = {0};
	struct xorb xorb;
	send(&samples[4]);
	ck_assert_int_eq(xorb_find(fixture.store, &hash, &xorb, &err), 0);
	const struct xorb_place place = {
		.hash = hash, .pack = xorb.pack, .first = xorb.first, .count = xorb.count};
	const int64_t later = xorb.promised_ms + 10 * HOUR_MS;
	ck_assert_int_eq(promise(&place, 1, later, &err), 0);
	ck_assert_int_eq(promise(&place, 1, later - HOUR_MS, &err), 0);
	ck_assert_int_eq(xorb_find(fixture.store, &hash, &xorb, &err), 0);
	ck_assert_int_eq(xorb.promised_ms, later);
}
END_TEST

/* Half of an uploaded xorb, as if an ingest had made a xorb of it: all or none. */
START_TEST(only_what_is_whole_is_promised)
{
	const struct chunk_id hash = xorb_sample_hash(&samples[4]);
	struct error err = {0};
	struct xorb xorb;
	send(&samples[4]);
	ck_assert_int_eq(xorb_find(fixture.store, &hash, &xorb, &err), 0);
	struct xorb_place places[] = {
		{.hash = {.bytes = {1}}, .pack = xorb.pack, .first = 0, .count = 20},
		{.hash = {.bytes = {2}}, .pack = xorb.pack, .first = 21, .count = 20},
	};
	ck_assert_int_eq(promise(places, 2, fixture.clock.now_ms + HOUR_MS, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NOT_FOUND);
	struct xorb_place turned[] = {places[1], places[0]};
	ck_assert_int_eq(promise(turned, 2, fixture.clock.now_ms + HOUR_MS, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NOT_FOUND);
	places[1].pack.bytes[0] ^= 1;
	ck_assert_int_eq(promise(places, 2, fixture.clock.now_ms + HOUR_MS, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NOT_FOUND);
	ck_assert_int_eq(count("SELECT COUNT(*) FROM xorbs"), 1);
	places[1].pack = xorb.pack;
	places[1].count = 19;
	ck_assert_msg(
		promise(places, 2, fixture.clock.now_ms + HOUR_MS, &err) == 0, "%s", err.text);
	ck_assert_int_eq(xorb_find(fixture.store, &places[1].hash, &xorb, &err), 0);
	ck_assert_uint_eq(xorb.first, 21);
	ck_assert_uint_eq(xorb.count, 19);
}
END_TEST

/* Xorbs of a pack that gc deletes get no promise. A promise, made or refused, keeps its reference
 * to the pack only while the call runs. */
START_TEST(what_is_condemned_is_not_promised)
{
	const struct chunk_id hash = xorb_sample_hash(&samples[4]);
	struct error err = {0};
	struct xorb xorb;
	send(&samples[4]);
	ck_assert_int_eq(xorb_find(fixture.store, &hash, &xorb, &err), 0);
	struct xorb_place place = {
		.hash = {.bytes = {1}}, .pack = xorb.pack, .first = 0, .count = 20};
	ck_assert_int_eq(promise(&place, 1, fixture.clock.now_ms + HOUR_MS, &err), 0);
	ck_assert(!pack_cache_is_referred(store_packs(fixture.store)->cache, &xorb.pack));
	ck_assert_int_eq(
		fixture_run(fixture.store, "UPDATE packs SET state = 2, condemned_ms = 1", &err),
		0);
	place.hash.bytes[0] = 2;
	ck_assert_int_eq(promise(&place, 1, fixture.clock.now_ms + HOUR_MS, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NOT_FOUND);
	ck_assert(!pack_cache_is_referred(store_packs(fixture.store)->cache, &xorb.pack));
	ck_assert_int_eq(
		fixture_run(fixture.store, "UPDATE packs SET state = 1, condemned_ms = NULL", &err),
		0);
	place.count = 20000;
	ck_assert_int_eq(promise(&place, 1, fixture.clock.now_ms + HOUR_MS, &err), -1);
	ck_assert(!pack_cache_is_referred(store_packs(fixture.store)->cache, &xorb.pack));
}
END_TEST

static void list_packs(struct pack_id *out, size_t count)
{
	struct error err = {0};
	struct db *db = store_reader_take(fixture.store, &err);
	struct db_statement *rows = db_query(db, "SELECT id FROM packs ORDER BY number", &err);
	for (size_t i = 0; i < count; i++) {
		ck_assert_int_eq(db_step(rows, &err), 1);
		memcpy(out[i].bytes, db_column_blob(rows, 0).data, PACK_ID_BYTES);
	}
	db_reset(rows);
	store_reader_give(fixture.store, db);
}

static int64_t promise_of_all(void)
{
	struct error err = {0};
	int64_t until_ms = -1;
	const int64_t part_set = count("SELECT max(part_set) FROM segments");
	ck_assert_int_eq(count("SELECT count(DISTINCT part_set) FROM segments"), 1);
	struct db *db = store_reader_take(fixture.store, &err);
	ck_assert_int_eq(xorb_row_promise_of_set(db, part_set, &until_ms, &err), 0);
	store_reader_give(fixture.store, db);
	return until_ms;
}

/* For an object in several packs: the last promise of any xorb in them. */
START_TEST(the_last_promise_of_an_object_counts)
{
	const int64_t now_ms = fixture.clock.now_ms;
	struct error err = {0};
	struct pack_id packs[2];
	uint8_t *bytes = fixture_noise(3000000, 5);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "bucket", "main", &err), 0);
	ck_assert_int_eq(
		fixture_put(fixture.store, "bucket", "key", span_of(bytes, 3000000), &err), 0);
	free(bytes);
	ck_assert_int_eq(promise_of_all(), 0);
	list_packs(packs, 2);
	const struct xorb_place places[] = {
		{.hash = {.bytes = {1}}, .pack = packs[0], .first = 0, .count = 1},
		{.hash = {.bytes = {2}}, .pack = packs[1], .first = 0, .count = 1},
		{.hash = {.bytes = {3}}, .pack = packs[1], .first = 1, .count = 1}};
	ck_assert_int_eq(promise(&places[0], 1, now_ms + 2 * HOUR_MS, &err), 0);
	ck_assert_int_eq(promise(&places[1], 1, now_ms + 3 * HOUR_MS, &err), 0);
	ck_assert_int_eq(promise(&places[2], 1, now_ms + HOUR_MS, &err), 0);
	ck_assert_int_eq(promise_of_all(), now_ms + 3 * HOUR_MS);
}
END_TEST

Suite *test_xorb_put_suite(void)
{
	Suite *const suite = suite_create("xorb_put");
	TCase *const all = tcase_create("all");
	tcase_add_checked_fixture(all, setup, teardown);
	tcase_set_timeout(all, 120);
	tcase_add_loop_test(all, a_xorb_is_kept_as_it_lies, 0, SAMPLES);
	tcase_add_loop_test(all, what_clients_read_otherwise_is_stored_plain, 0, 2);
	tcase_add_test(all, private_codecs_are_for_who_may);
	tcase_add_test(all, what_is_not_the_xorb_is_refused_and_not_kept);
	tcase_add_test(all, an_upload_that_ends_early_leaves_nothing);
	tcase_add_test(all, a_repeat_renews_the_promise_and_stores_nothing);
	tcase_add_test(all, of_uploads_at_a_time_one_is_kept);
	tcase_add_test(all, objects_share_the_chunks_of_xorbs);
	tcase_add_test(all, promises_are_raised_never_lowered);
	tcase_add_test(all, only_what_is_whole_is_promised);
	tcase_add_test(all, what_is_condemned_is_not_promised);
	tcase_add_test(all, the_last_promise_of_an_object_counts);
	suite_add_tcase(suite, all);
	return suite;
}
