/* A store whose packs lie in a far place: small uploads are rows until their pack is stored. */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "storage/core/committer.h"
#include "storage/db/db_rows.h"
#include "storage/packs/pack_store.h"
#include "tests/unit/storage/far_fixture.h"
#include "tests/unit/storage/store_fixture.h"

enum {
	SMALL = 100 * 1000,
	LARGE = 3 * 1000 * 1000,
	NOISE = 10 * 1000 * 1000,
	KEPT_OPEN_MS = 1000 * 1000,
	STORED_MS = 1
};
enum { WAITS = 2000, WAIT_US = 5000 };

static struct store_fixture fixture;
static struct far_fixture place;
static char *folder;
static uint8_t *noise;

static void set_up(void)
{
	struct error err = {0};
	noise = fixture_noise(NOISE, 7);
	memset(&fixture, 0, sizeof(fixture));
	folder = unit_scratch_make();
	place = (struct far_fixture){.folder = folder};
	fixture.far = &place;
	fixture.pack_open_ms = KEPT_OPEN_MS;
	store_fixture_open(&fixture);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "abc", "main", &err), 0);
}

static void tear_down(void)
{
	store_fixture_close(&fixture);
	unit_scratch_remove(folder);
	free(noise);
}

static struct span content(unsigned number, size_t len)
{
	return span_of(noise + (size_t)number * SMALL, len);
}

static int put(unsigned number, size_t len, struct error *err)
{
	char key[16];
	snprintf(key, sizeof(key), "k%u", number);
	return fixture_put(fixture.store, "abc", key, content(number, len), err);
}

static void put_all(unsigned from, unsigned count)
{
	struct error err = {0};
	for (unsigned i = from; i < from + count; i++)
		ck_assert_msg(put(i, SMALL, &err) == 0, "%s", err.text);
}

static bool holds_all(unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		char key[16];
		snprintf(key, sizeof(key), "k%u", i);
		if (!fixture_holds(&fixture, "abc", key, content(i, SMALL)))
			return false;
	}
	return true;
}

static int64_t count_of(const char *sql)
{
	struct error err = {0};
	int64_t count = -1;
	struct db *const db = store_reader_take(fixture.store, &err);
	ck_assert_int_eq(db_find_i64(db, sql, &count, &err), 1);
	store_reader_give(fixture.store, db);
	return count;
}

static int64_t staged_rows(void)
{
	return count_of("SELECT count(*) FROM pack_staged");
}

static void reopen(int64_t pack_open_ms)
{
	fixture.pack_open_ms = pack_open_ms;
	store_fixture_reopen(&fixture);
}

static void await_stored(void)
{
	for (int i = 0; i < WAITS && pack_store_shared_waits(store_packs(fixture.store)); i++)
		usleep(WAIT_US);
	ck_assert(!pack_store_shared_waits(store_packs(fixture.store)));
}

/* Staged files are gone with the process: only the rows are left of them. */
START_TEST(small_uploads_survive_without_their_place)
{
	put_all(0, 5);
	ck_assert_int_gt(staged_rows(), 0);
	ck_assert(holds_all(5));
	ck_assert_int_eq(atomic_load(&place.stored), 0);
	reopen(KEPT_OPEN_MS);
	ck_assert(holds_all(5));
}
END_TEST

/* An open pack is stored once it is old enough; then it has no rows, and the place has all. */
START_TEST(packs_are_stored_and_sealed)
{
	put_all(0, 5);
	reopen(STORED_MS);
	put_all(5, 3);
	fixture.clock.now_ms += 10;
	await_stored();
	ck_assert_int_eq(staged_rows(), 0);
	ck_assert_int_eq(count_of("SELECT count(*) FROM packs WHERE state = 0"), 0);
	ck_assert_int_eq(atomic_load(&place.stored), 2);
	ck_assert(holds_all(8));
	reopen(KEPT_OPEN_MS);
	ck_assert(holds_all(8));
}
END_TEST

/* A pack that is full is stored although no time has passed. */
START_TEST(full_packs_are_stored)
{
	put_all(0, 15);
	for (int i = 0; i < WAITS && atomic_load(&place.stored) == 0; i++)
		usleep(WAIT_US);
	ck_assert_int_ge(atomic_load(&place.stored), 1);
	ck_assert(holds_all(15));
}
END_TEST

START_TEST(small_uploads_go_on_while_the_place_is_away)
{
	struct error err = {0};
	reopen(STORED_MS);
	atomic_store(&place.is_away, true);
	put_all(0, 5);
	fixture.clock.now_ms += 10;
	ck_assert(holds_all(5));
	ck_assert_int_eq(put(50, LARGE, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_UPSTREAM);
	atomic_store(&place.is_away, false);
	await_stored();
	ck_assert_int_eq(staged_rows(), 0);
	ck_assert(holds_all(5));
}
END_TEST

/* Sealed packs count as there without a look. */
START_TEST(a_start_asks_nothing_of_the_place)
{
	put_all(0, 5);
	reopen(STORED_MS);
	fixture.clock.now_ms += 10;
	await_stored();
	atomic_store(&place.is_away, true);
	reopen(KEPT_OPEN_MS);
	put_all(5, 2);
	atomic_store(&place.is_away, false);
	ck_assert(holds_all(7));
}
END_TEST

/* Rows that are not the bytes of the pack: its objects fail, the store starts, and the rows stay. */
START_TEST(a_lost_row_costs_its_pack_alone)
{
	struct error err = {0};
	put_all(0, 5);
	const int64_t before = staged_rows();
	store_fixture_stop(&fixture);
	char *const path = store_fixture_path(&fixture, "catalog.db");
	struct db *const db = db_open(path, DB_WRITE, &err);
	ck_assert_int_eq(db_run(db,
				 "DELETE FROM pack_staged WHERE start > 0 AND id ="
				 " (SELECT max(id) FROM pack_staged)",
				 &err),
		0);
	db_close(db);
	free(path);
	fixture.is_damaged = true;
	store_fixture_start(&fixture);
	ck_assert(!holds_all(5));
	ck_assert_int_eq(staged_rows(), before - 1);
	ck_assert_int_eq(atomic_load(&place.stored), 0);
}
END_TEST

Suite *test_far_packs_suite(void);
Suite *test_far_packs_suite(void)
{
	Suite *const suite = suite_create("far_packs");
	TCase *const tests = tcase_create("far_packs");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_set_timeout(tests, 60);
	tcase_add_test(tests, small_uploads_survive_without_their_place);
	tcase_add_test(tests, packs_are_stored_and_sealed);
	tcase_add_test(tests, full_packs_are_stored);
	tcase_add_test(tests, small_uploads_go_on_while_the_place_is_away);
	tcase_add_test(tests, a_start_asks_nothing_of_the_place);
	tcase_add_test(tests, a_lost_row_costs_its_pack_alone);
	suite_add_tcase(suite, tests);
	return suite;
}
