/* Sound records are offered in place of damaged ones: which damage they mend, in any order, and
 * which offers are dropped. The sound records here lie in the pack itself: only the notes of damage
 * are wrong. */
#include "storage/core/damage_book.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "storage/core/committer.h"
#include "storage/core/store.h"
#include "storage/objects/object_copy.h"
#include "storage/objects/object_read.h"
#include "storage/packs/pack_store_parts.h"
#include "tests/unit/storage/damage_fixture.h"
#include "tests/unit/storage/hold_fixture.h"
#include "tests/unit/storage/pack_fixture.h"
#include "tests/unit/unit.h"

Suite *test_damage_offer_suite(void);

enum { SMALL = 200000, LARGE = 3000000, OFFERS = 8 };

static struct store_fixture fixture;
static struct metrics *metrics;
static uint8_t *noise;
static struct chunk_repair offers[OFFERS];
static size_t offer_count;

static void set_up(void)
{
	struct error err = {0};
	metrics = metrics_new();
	fixture = (struct store_fixture){.metrics = metrics};
	store_fixture_open(&fixture);
	noise = fixture_noise(2 * LARGE, 23);
	offer_count = 0;
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "box", "main", &err), 0);
}

static void tear_down(void)
{
	store_fixture_close(&fixture);
	metrics_free(metrics);
	free(noise);
}

static struct pack_store *packs(void)
{
	return store_packs(fixture.store);
}

/* Gives the place of the object's first chunk. The others follow it in the pack. */
static struct chunk_place put(const char *key, struct span bytes)
{
	static const char sql[] =
		"SELECT p.id, s.first FROM segments s JOIN packs p ON p.number = s.pack WHERE s.part_set ="
		" (SELECT CASE WHEN coalesce(part_set, 0) = 0 THEN -sequence ELSE part_set END FROM versions"
		" ORDER BY sequence DESC LIMIT 1) ORDER BY s.number, s.start LIMIT 1";
	struct error err = {0};
	struct chunk_place place = {.chunk = 0};
	ck_assert_msg(fixture_put(fixture.store, "box", key, bytes, &err) == 0, "%s", err.text);
	struct db *db = store_reader_take(fixture.store, &err);
	struct db_statement *row = db_query(db, sql, &err);
	ck_assert_msg(db_step(row, &err) == 1, "%s", err.text);
	memcpy(place.pack.bytes, db_column_blob(row, 0).data, PACK_ID_BYTES);
	place.chunk = (uint32_t)db_column_i64(row, 1);
	db_reset(row);
	store_reader_give(fixture.store, db);
	return place;
}

static void offer(const struct chunk_place *place, uint32_t chunk)
{
	const struct chunk_place one = {.pack = place->pack, .chunk = chunk};
	offers[offer_count++] = (struct chunk_repair){.damaged = one, .sound = one};
}

static void note(const struct chunk_place *place, uint32_t chunk)
{
	pack_damage_note(packs()->damage, &place->pack, chunk);
}

/* Waits until the offer has mended or was dropped. */
static void send_offers(void)
{
	pack_damage_offer(packs()->damage, offers, offer_count);
	helpers_pass(fixture.store);
}

static bool holds(const char *key, struct span bytes)
{
	return fixture_holds(&fixture, "box", key, bytes);
}

static int64_t moved_packs(void)
{
	return fixture_count(fixture.store, "SELECT COUNT(*) FROM packs WHERE file IS NOT NULL");
}

/* Two uploads may meet one damaged chunk, and a stream meets its chunks in an order of its own. */
START_TEST(chunks_are_mended_in_whatever_order_they_come)
{
	static const uint32_t chunks[] = {9, 2, 7, 2, 0, 9};
	const struct span bytes = span_of(noise, LARGE);
	const struct chunk_place place = put("old", bytes);
	store_fixture_reopen(&fixture);
	for (size_t i = 0; i < sizeof(chunks) / sizeof(*chunks); i++) {
		note(&place, chunks[i]);
		offer(&place, chunks[i]);
	}
	damage_fixture_await(&fixture, 4);
	send_offers();
	damage_fixture_await(&fixture, 0);
	ck_assert_int_eq(moved_packs(), 1);
	ck_assert_int_ge(metrics_get(metrics, METRIC_CHUNKS_MENDED), 4);
	ck_assert(holds("old", bytes));
	store_fixture_reopen(&fixture);
	ck_assert(holds("old", bytes));
}
END_TEST

START_TEST(chunks_of_several_packs_are_mended_in_whatever_order_they_come)
{
	const struct span bytes[] = {span_of(noise, LARGE), span_of(noise + LARGE, LARGE)};
	const struct chunk_place places[] = {put("first", bytes[0]), put("second", bytes[1])};
	ck_assert(!pack_id_equal(&places[0].pack, &places[1].pack));
	store_fixture_reopen(&fixture);
	for (uint32_t chunk = 6; chunk > 3; chunk--)
		for (size_t i = 0; i < 2; i++) {
			note(&places[i], chunk);
			offer(&places[i], chunk);
		}
	send_offers();
	damage_fixture_await(&fixture, 0);
	ck_assert_int_eq(moved_packs(), 2);
	ck_assert_int_eq(metrics_get(metrics, METRIC_CHUNKS_MENDED), 6);
	ck_assert(holds("first", bytes[0]) && holds("second", bytes[1]));
}
END_TEST

/* Records are taken as they are stored, not as they are shown. */
START_TEST(chunks_in_a_code_of_our_own_are_mended)
{
	uint8_t *numbers = fixture_bytes(FIXTURE_BF16, 5, LARGE);
	const struct chunk_place place = put("old", span_of(numbers, LARGE));
	store_fixture_reopen(&fixture);
	for (uint32_t chunk = 1; chunk < 5; chunk++) {
		note(&place, chunk);
		offer(&place, chunk);
	}
	send_offers();
	damage_fixture_await(&fixture, 0);
	store_fixture_reopen(&fixture);
	ck_assert(holds("old", span_of(numbers, LARGE)));
	free(numbers);
}
END_TEST

/* Another upload was faster. */
START_TEST(what_is_not_damaged_any_more_is_not_written_anew)
{
	const struct span bytes = span_of(noise, LARGE);
	const struct chunk_place place = put("old", bytes);
	store_fixture_reopen(&fixture);
	offer(&place, 3);
	send_offers();
	ck_assert_int_eq(moved_packs(), 0);
	ck_assert(!pack_cache_is_referred(packs()->cache, &place.pack));
	ck_assert(holds("old", bytes));
}
END_TEST

/* The old file of the pack is removed, and remembered until then. */
START_TEST(a_file_that_cannot_be_removed_is_remembered)
{
	static struct file_faults faults; /* outlives the store */
	const struct chunk_place place = put("old", span_of(noise, LARGE));
	const int64_t files = fixture_pack_files(&fixture, "-name '*.pack'");
	file_faults_init(&faults, 0, 0, EIO);
	store_fixture_stop(&fixture);
	fixture.files = &faults.ops;
	store_fixture_start(&fixture);
	note(&place, 3);
	offer(&place, 3);
	faults.sticky = true;
	faults.kinds = FILE_FAULT_UNLINK;
	send_offers();
	damage_fixture_await(&fixture, 0);
	faults.kinds = 0;
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM removals"), 1);
	ck_assert_int_eq(fixture_pack_files(&fixture, "-name '*.pack'"), files + 1);
	store_fixture_stop(&fixture);
	fixture.files = NULL;
	store_fixture_start(&fixture);
	ck_assert_int_eq(fixture_pack_files(&fixture, "-name '*.pack'"), files);
	ck_assert(holds("old", span_of(noise, LARGE)));
}
END_TEST

/* gc does not delete a pack that is referred. */
START_TEST(no_pack_stays_held)
{
	const struct chunk_place place = put("old", span_of(noise, LARGE));
	struct chunk_place gone = {.chunk = 3};
	store_fixture_reopen(&fixture);
	memset(gone.pack.bytes, 0xee, sizeof(gone.pack.bytes));
	note(&place, 3);
	note(&place, 5);
	offer(&place, 3);
	offer(&place, 5);
	offers[1].sound = gone;
	send_offers();
	damage_fixture_await(&fixture, 1);
	ck_assert(pack_damage_has(packs()->damage, &place.pack, 5, 1));
	ck_assert(!pack_cache_is_referred(packs()->cache, &place.pack));
}
END_TEST

/* Neither the pack that is mended nor the pack of the sound record. */
START_TEST(no_pack_stays_held_that_a_record_came_from)
{
	const struct chunk_place damaged = put("old", span_of(noise, LARGE));
	const struct chunk_place sound = put("other", span_of(noise + LARGE, LARGE));
	ck_assert(!pack_id_equal(&damaged.pack, &sound.pack));
	store_fixture_reopen(&fixture);
	note(&damaged, 3);
	offer(&damaged, 3);
	offers[0].sound = (struct chunk_place){.pack = sound.pack, .chunk = 3};
	send_offers();
	ck_assert(!pack_cache_is_referred(packs()->cache, &damaged.pack));
	ck_assert(!pack_cache_is_referred(packs()->cache, &sound.pack));
}
END_TEST

/* Waits until all queued changes have run. */
static int64_t rows_at_last(void)
{
	struct committer_hold *hold = committer_hold_new(fixture.store);
	committer_hold_end(hold);
	return fixture_count(fixture.store, "SELECT COUNT(*) FROM damaged_chunks");
}

/* A store that closes waits for the present mending and drops later offers. */
START_TEST(a_closed_book_takes_nothing_more)
{
	const struct chunk_place place = put("old", span_of(noise, LARGE));
	store_fixture_reopen(&fixture);
	struct damage_book *book = damage_book_open(fixture.store);
	note(&place, 3);
	offer(&place, 3);
	pack_damage_offer(packs()->damage, offers, offer_count);
	damage_book_close(book);
	ck_assert(!pack_cache_is_referred(packs()->cache, &place.pack));
	const int64_t known = rows_at_last();
	note(&place, 4);
	pack_damage_offer(packs()->damage, offers, offer_count);
	ck_assert(!pack_cache_is_referred(packs()->cache, &place.pack));
	ck_assert_int_eq(rows_at_last(), known);
	helpers_pass(fixture.store);
	damage_book_free(book);
	pack_damage_listen(packs()->damage, &(struct pack_damage_listener){.owner = NULL});
}
END_TEST

/* For one pack: a copy notices damage only in the chunks of its own source. */
START_TEST(a_copy_is_refused_for_its_own_chunks_alone)
{
	static const char *const keys[] = {"before", "damaged", "behind"};
	struct error err = {0};
	struct chunk_place places[3];
	for (size_t i = 0; i < 3; i++)
		places[i] = put(keys[i], span_of(noise + i * SMALL, SMALL));
	ck_assert(pack_id_equal(&places[0].pack, &places[2].pack));
	note(&places[1], _i == 0 ? places[1].chunk : places[2].chunk - 1);
	damage_fixture_await(&fixture, 1);
	for (size_t i = 0; i < 3; i++) {
		struct object source;
		struct object copy;
		ck_assert_int_eq(fixture_find(&fixture, "box", keys[i], &source, &err), 0);
		struct object_copy_params params = {.source = &source,
			.bucket = bucket_named(span_text("box")),
			.key = span_text("copy")};
		ck_assert_msg(
			fixture_copy(fixture.store, &params, &copy, &err) == (i == 1 ? -1 : 0),
			"%s %s", keys[i], err.text);
	}
	ck_assert_int_eq(err.kind, ERROR_CONTENT_DAMAGED);
}
END_TEST

Suite *test_damage_offer_suite(void)
{
	Suite *suite = suite_create("damage_offer");
	TCase *tests = tcase_create("offers");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_set_timeout(tests, 120);
	tcase_add_test(tests, chunks_are_mended_in_whatever_order_they_come);
	tcase_add_test(tests, chunks_of_several_packs_are_mended_in_whatever_order_they_come);
	tcase_add_test(tests, chunks_in_a_code_of_our_own_are_mended);
	tcase_add_test(tests, what_is_not_damaged_any_more_is_not_written_anew);
	tcase_add_test(tests, a_file_that_cannot_be_removed_is_remembered);
	tcase_add_test(tests, no_pack_stays_held);
	tcase_add_test(tests, no_pack_stays_held_that_a_record_came_from);
	tcase_add_test(tests, a_closed_book_takes_nothing_more);
	tcase_add_loop_test(tests, a_copy_is_refused_for_its_own_chunks_alone, 0, 2);
	suite_add_tcase(suite, tests);
	return suite;
}
