/* Damaged chunks lead to every key that reads them, through copies and recipes, and to the steps
 * that name those versions. */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>

#include "storage/reach/reach.h"
#include "tests/unit/storage/derived_fixture.h"
#include "tests/unit/storage/step_fixture.h"

enum { SMALL = 5000, LARGE = 300000 };

static const char SQL_PACK[] =
	"SELECT s.pack FROM versions v JOIN segments s ON s.part_set = -v.sequence WHERE v.key = ?1";
static struct error err;

static void put(struct store *store, const char *key, size_t size, uint64_t seed)
{
	uint8_t *bytes = fixture_noise(size, seed);
	ck_assert_int_eq(fixture_put(store, "bucket", key, span_of(bytes, size), &err), 0);
	free(bytes);
}

/* What the chunks of this object lead to. */
static struct reach *reach_of(struct db *db, const char *key)
{
	struct reach *reach = reach_new(db);
	int64_t pack = 0;
	ck_assert_int_eq(db_find_i64(db, SQL_PACK, &pack, &err, db_blob(span_text(key))), 1);
	ck_assert_int_eq(reach_add_chunks(reach, pack, 0, 1, &err), 0);
	ck_assert_msg(reach_settle(reach, &err) == 0, "%s", err.text);
	return reach;
}

static bool has_key(const struct reach *reach, const char *name)
{
	size_t listed, count;
	const struct reach_key *keys = reach_keys(reach, &listed, &count);
	for (size_t i = 0; i < listed; i++)
		if (span_equal_text(keys[i].key, name) && keys[i].bucket.len > 0)
			return true;
	return false;
}

START_TEST(a_copy_is_reached_and_a_neighbour_is_not)
{
	struct store_fixture fixture = {0};
	struct object source;
	struct object copy;
	size_t listed, count;
	store_fixture_open(&fixture);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "bucket", "main", &err), 0);
	put(fixture.store, "large", LARGE, 1);
	put(fixture.store, "neighbour", LARGE, 2);
	ck_assert_int_eq(fixture_find(&fixture, "bucket", "large", &source, &err), 0);
	struct object_copy_params params = {
		.source = &source, .bucket = fixture_bucket("bucket"), .key = span_text("copy")};
	ck_assert_msg(fixture_copy(fixture.store, &params, &copy, &err) == 0, "%s", err.text);
	struct db *db = store_snapshot_take(fixture.store, &err);
	struct reach *reach = reach_of(db, "large");
	ck_assert(has_key(reach, "large") && has_key(reach, "copy"));
	ck_assert(!has_key(reach, "neighbour"));
	(void)reach_keys(reach, &listed, &count);
	ck_assert_uint_eq(count, 2);
	reach_clear(reach);
	ck_assert_int_eq(reach_settle(reach, &err), 0);
	(void)reach_keys(reach, &listed, &count);
	ck_assert_uint_eq(count, 0);
	reach_free(reach);
	store_snapshot_give(fixture.store, db);
	store_fixture_close(&fixture);
}
END_TEST

START_TEST(the_copy_stays_when_the_first_key_goes)
{
	struct store_fixture fixture = {0};
	struct object source;
	struct object copy;
	store_fixture_open(&fixture);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "bucket", "main", &err), 0);
	put(fixture.store, "large", LARGE, 1);
	ck_assert_int_eq(fixture_find(&fixture, "bucket", "large", &source, &err), 0);
	struct object_copy_params params = {
		.source = &source, .bucket = fixture_bucket("bucket"), .key = span_text("copy")};
	ck_assert_int_eq(fixture_copy(fixture.store, &params, &copy, &err), 0);
	int64_t pack = fixture_count(fixture.store, "SELECT max(pack) FROM segments");
	ck_assert_int_eq(fixture_delete(fixture.store, "bucket", "large", NULL, &err), 0);
	struct db *db = store_snapshot_take(fixture.store, &err);
	struct reach *reach = reach_new(db);
	ck_assert_int_eq(reach_add_chunks(reach, pack, 0, 1, &err), 0);
	ck_assert_int_eq(reach_settle(reach, &err), 0);
	ck_assert(!has_key(reach, "large") && has_key(reach, "copy"));
	reach_free(reach);
	store_snapshot_give(fixture.store, db);
	store_fixture_close(&fixture);
}
END_TEST

START_TEST(a_derived_version_is_reached_through_its_source)
{
	struct store_fixture fixture = {0};
	struct derived_checkpoint base;
	struct derived_checkpoint next;
	store_fixture_open(&fixture);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "b", "main", &err), 0);
	derived_checkpoint_make(&base, 3000, 0);
	derived_checkpoint_make(&next, 3000, 1);
	const struct object object = derived_fixture_put(&fixture, "b", "base", &base);
	(void)derived_fixture_put_swapped(&fixture, "b", "next", &base, &object, &next);
	struct db *db = store_snapshot_take(fixture.store, &err);
	struct reach *reach = reach_of(db, "base");
	ck_assert(has_key(reach, "base") && has_key(reach, "next"));
	reach_free(reach);
	store_snapshot_give(fixture.store, db);
	derived_checkpoint_release(&base);
	derived_checkpoint_release(&next);
	store_fixture_close(&fixture);
}
END_TEST

START_TEST(the_step_that_names_an_object_is_reached)
{
	struct step_fixture fixture;
	size_t listed, count;
	step_fixture_open(&fixture);
	step_fixture_publish(&fixture, 0, STEP_WITH_ANCHOR);
	step_fixture_publish(&fixture, 1, STEP_WITH_DELTA);
	struct store *store = fixture.store.store;
	const int64_t version = fixture_count(store,
		"SELECT o.version FROM step_objects o JOIN steps s ON s.id = o.step WHERE s.step = 1");
	struct db *db = store_snapshot_take(store, &err);
	struct reach *reach = reach_new(db);
	reach_add_version(reach, version);
	ck_assert_int_eq(reach_settle(reach, &err), 0);
	const struct reach_step *steps = reach_steps(reach, &listed, &count);
	ck_assert_uint_eq(count, 1);
	ck_assert_int_eq(steps[0].step, 1);
	ck_assert(span_equal_text(steps[0].bucket, "bucket"));
	ck_assert(span_equal_text(steps[0].run, "run"));
	ck_assert_int_eq(steps[0].form, REACH_STEP);
	reach_free(reach);
	store_snapshot_give(store, db);
	step_fixture_close(&fixture);
}
END_TEST

START_TEST(a_hundred_keys_are_listed_and_all_are_counted)
{
	enum { KEYS = REACH_LIMIT + 20 };
	struct store_fixture fixture = {0};
	size_t listed, count;
	store_fixture_open(&fixture);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "bucket", "main", &err), 0);
	for (unsigned i = 0; i < KEYS; i++) {
		char name[16];
		snprintf(name, sizeof(name), "key%u", i);
		put(fixture.store, name, SMALL, 7); /* equal bytes share their chunk */
	}
	struct db *db = store_snapshot_take(fixture.store, &err);
	struct reach *reach = reach_of(db, "key0");
	(void)reach_keys(reach, &listed, &count);
	ck_assert_uint_eq(listed, REACH_LIMIT);
	ck_assert_uint_eq(count, KEYS);
	reach_free(reach);
	store_snapshot_give(fixture.store, db);
	store_fixture_close(&fixture);
}
END_TEST

Suite *test_reach_suite(void);
Suite *test_reach_suite(void)
{
	Suite *suite = suite_create("reach");
	TCase *tests = tcase_create("all");
	tcase_add_test(tests, a_copy_is_reached_and_a_neighbour_is_not);
	tcase_add_test(tests, the_copy_stays_when_the_first_key_goes);
	tcase_add_test(tests, a_derived_version_is_reached_through_its_source);
	tcase_add_test(tests, the_step_that_names_an_object_is_reached);
	tcase_add_test(tests, a_hundred_keys_are_listed_and_all_are_counted);
	suite_add_tcase(suite, tests);
	return suite;
}
