/* A derived version was made into records for Xet clients, and these are damaged. */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "storage/files/xet_file.h"
#include "storage/packs/pack_store_parts.h"
#include "storage/scrub/scrub.h"
#include "tests/unit/storage/damage_fixture.h"
#include "tests/unit/storage/derived_fixture.h"

Suite *test_made_drop_suite(void);

enum { LARGE = 3 * 1024 * 1024 };

static struct store_fixture fixture;
static struct derived_checkpoint base;
static struct derived_checkpoint next;
static struct object derived;

static void set_up(void)
{
	struct error err = {0};
	fixture = (struct store_fixture){0};
	derived_checkpoint_make(&base, LARGE, 0);
	derived_checkpoint_make(&next, LARGE, 1);
	store_fixture_open(&fixture);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "b", "main", &err), 0);
	const struct object root = derived_fixture_put(&fixture, "b", "base", &base);
	derived = derived_fixture_put_swapped(&fixture, "b", "next", &base, &root, &next);
	fixture_await_start(fixture.store);
	ck_assert_msg(
		derived_fixture_make(fixture.store, derived.sequence, &err) == 0, "%s", err.text);
}

static void tear_down(void)
{
	store_fixture_close(&fixture);
	derived_checkpoint_release(&base);
	derived_checkpoint_release(&next);
}

static int64_t made_files(void)
{
	return fixture_count(fixture.store, "SELECT count(*) FROM xet_files WHERE is_made = 1");
}

/* Flips a byte in the first chunk of the made file that nothing else has. */
static void flip_made(void)
{
	static const char sql[] =
		"SELECT p.id, s.first FROM xet_files x JOIN segments s ON s.part_set = x.part_set"
		" JOIN packs p ON p.number = s.pack WHERE x.is_made = 1 AND NOT EXISTS (SELECT 1 FROM segments o"
		"  WHERE o.pack = s.pack AND o.part_set <> s.part_set) ORDER BY s.number, s.start LIMIT 1";
	struct error err = {0};
	struct pack_id id;
	struct pack_entry entry;
	char name[PACK_NAME_BYTES];
	char relative[PACK_NAME_BYTES + 10];
	struct pack_cache *cache = store_packs(fixture.store)->cache;
	struct db *db = store_reader_take(fixture.store, &err);
	struct db_statement *row = db_query(db, sql, &err);
	ck_assert_msg(db_step(row, &err) == 1, "%s", err.text);
	memcpy(id.bytes, db_column_blob(row, 0).data, PACK_ID_BYTES);
	const uint32_t chunk = (uint32_t)db_column_i64(row, 1);
	db_reset(row);
	store_reader_give(fixture.store, db);
	struct pack *pinned = pack_cache_pin(cache, &id, false, &err);
	ck_assert_msg(pinned != NULL, "%s", err.text);
	ck_assert_uint_eq(pack_cache_copy_entries(cache, pinned, chunk, &entry, 1), 1);
	pack_cache_unpin(cache, pinned);
	pack_format_name(&id, PACK_FILE_PACK, name);
	snprintf(relative, sizeof relative, "packs/%.2s/%s", name, name);
	char *path = store_fixture_path(&fixture, relative);
	damage_fixture_flip(path, entry.offset);
	free(path);
}

static void scrub(void)
{
	struct error err = {0};
	struct scrub_request request = {.resumes = false};
	struct scrub *all = store_parts(fixture.store)->scrub;
	ck_assert_msg(scrub_run(all, &request, &err) == 0, "%s", err.text);
}

START_TEST(a_damaged_made_file_is_dropped_and_made_again)
{
	struct error err = {0};
	ck_assert_int_eq(made_files(), 1);
	flip_made();
	scrub();
	ck_assert_uint_eq(pack_damage_count(store_packs(fixture.store)->damage), 1);
	ck_assert_int_eq(made_files(), 0);
	ck_assert(fixture_holds(&fixture, "b", "next", buffer_span(&next.bytes)));
	ck_assert_msg(
		derived_fixture_make(fixture.store, derived.sequence, &err) == 0, "%s", err.text);
	ck_assert(
		derived_fixture_made_holds(&fixture, &derived.file_hash, buffer_span(&next.bytes)));
}
END_TEST

START_TEST(a_sound_made_file_stays)
{
	scrub();
	scrub();
	ck_assert_int_eq(made_files(), 1);
}
END_TEST

Suite *test_made_drop_suite(void)
{
	Suite *const suite = suite_create("made_drop");
	TCase *const tests = tcase_create("made_drop");
	tcase_set_timeout(tests, 60);
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, a_damaged_made_file_is_dropped_and_made_again);
	tcase_add_test(tests, a_sound_made_file_stays);
	suite_add_tcase(suite, tests);
	return suite;
}
