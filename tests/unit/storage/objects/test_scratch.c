#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "storage/core/committer.h"
#include "storage/objects/object_read.h"
#include "storage/objects/scratch.h"
#include "storage/versions/version.h"
#include "tests/unit/storage/store_fixture.h"

enum { LARGE = 3000000, FIRST_BUCKET = 1 };

static struct store_fixture fixture;
static uint8_t *noise;
static struct scratch *scratch;

static void set_up(void)
{
	struct error err = {0};
	memset(&fixture, 0, sizeof(fixture));
	store_fixture_open(&fixture);
	noise = fixture_noise(LARGE, 5);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "b", "main", &err), 0);
	scratch = scratch_open(fixture.store, &err);
	ck_assert_msg(scratch != NULL, "%s", err.text);
}

static void tear_down(void)
{
	scratch_close(scratch);
	store_fixture_close(&fixture);
	free(noise);
}

static const char *path_of(const char *name)
{
	return arena_format(fixture.arena, "%s/%s", scratch_path(scratch), name);
}

static void write_file(const char *path, size_t len)
{
	struct error err = {0};
	ck_assert_int_eq(file_place(file_system(), path, span_of(noise, len), 0600, &err), 0);
}

static bool file_holds(const char *path, size_t len)
{
	struct error err = {0};
	struct buffer bytes;
	buffer_init(&bytes, 2 * LARGE);
	const bool holds = file_read_all(path, &bytes, &err) == 0 &&
		span_equal(buffer_span(&bytes), span_of(noise, len));
	buffer_release(&bytes);
	return holds;
}

static int store_hidden(const char *path, int64_t *out_version, struct error *err)
{
	return scratch_store_hidden(
		fixture.store, path, FIRST_BUCKET, span_text("k"), out_version, err);
}

static int store_shown(const char *bucket, int64_t *out_version, struct error *err)
{
	return scratch_store(fixture.store, path_of("f"), bucket_named(span_text(bucket)),
		span_text("k"), out_version, err);
}

static void check_round_trip(size_t len)
{
	struct error err = {0};
	int64_t version = 0;
	const char *const from = path_of("from");
	const char *const to = path_of("deep/er/to");
	write_file(from, len);
	ck_assert_msg(store_hidden(from, &version, &err) == 0, "%s", err.text);
	ck_assert_msg(scratch_fetch(fixture.store, version, to, &err) == 0, "%s", err.text);
	ck_assert(file_holds(to, len));
	ck_assert_int_eq(scratch_release(fixture.store, version, &err), 0);
	ck_assert_int_eq(file_remove_tree(file_system(), path_of("deep"), &err), 0);
}

START_TEST(test_files_go_into_hidden_versions_and_back)
{
	static const size_t sizes[] = {0, 1, 1024, 1025, 300000, LARGE};
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		check_round_trip(sizes[i]);
}
END_TEST

START_TEST(test_names_that_fit_into_no_folder_are_bad_input)
{
	struct error err = {0};
	int64_t version = 0;
	write_file(path_of("from"), 10);
	ck_assert_int_eq(store_hidden(path_of("from"), &version, &err), 0);
	ck_assert_int_eq(scratch_fetch(fixture.store, version, path_of("from/below"), &err), -1);
	ck_assert_int_eq(err.kind, ERROR_INVALID);
	ck_assert_int_eq(scratch_fetch(fixture.store, version, path_of("from"), &err), -1);
	ck_assert_int_eq(err.kind, ERROR_INVALID);
	ck_assert(file_holds(path_of("from"), 10));
	ck_assert_int_eq(scratch_release(fixture.store, version, &err), 0);
}
END_TEST

START_TEST(test_paths_are_hidden_from_clients)
{
	struct error err = {0};
	error_set(&err, ERROR_INVALID, "its delta: %s: no JSON, nor %s",
		path_of("0/delta.safetensors"), path_of(""));
	scratch_hide_paths(fixture.store, &err);
	ck_assert_str_eq(err.text, "its delta: 0/delta.safetensors: no JSON, nor ");
	error_set(&err, ERROR_INVALID, "%.20s and no path", scratch_path(scratch));
	struct error same = err;
	scratch_hide_paths(fixture.store, &err);
	ck_assert_str_eq(err.text, same.text);
}
END_TEST

START_TEST(test_a_hidden_version_is_no_object)
{
	struct error err = {0};
	struct object object;
	int64_t version = 0;
	write_file(path_of("f"), 5000);
	ck_assert_int_eq(store_hidden(path_of("f"), &version, &err), 0);
	ck_assert_int_eq(fixture_find(&fixture, "b", "k", &object, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_KEY);
}
END_TEST

/* Versions that this process keeps are not those that an earlier process left. */
START_TEST(test_what_came_after_the_start_is_not_let_go)
{
	struct error err = {0};
	int64_t version = 0;
	write_file(path_of("f"), 5000);
	ck_assert_int_eq(store_hidden(path_of("f"), &version, &err), 0);
	ck_assert_msg(scratch_release_left(fixture.store, &err) == 0, "%s", err.text);
	ck_assert_msg(
		scratch_fetch(fixture.store, version, path_of("back"), &err) == 0, "%s", err.text);
	ck_assert(file_holds(path_of("back"), 5000));
	ck_assert_int_eq(scratch_release(fixture.store, version, &err), 0);
}
END_TEST

START_TEST(test_a_visible_one_is)
{
	struct error err = {0};
	struct object object;
	int64_t version = 0;
	write_file(path_of("f"), 5000);
	ck_assert_int_eq(store_shown("b", &version, &err), 0);
	ck_assert(fixture_holds(&fixture, "b", "k", span_of(noise, 5000)));
	ck_assert_int_eq(fixture_find(&fixture, "b", "k", &object, &err), 0);
	ck_assert_int_eq(object.sequence, version);
	ck_assert_uint_eq(strlen(object.etag), 34);
	ck_assert_str_eq(object.etag + 32, "-d");
	ck_assert_int_eq(object.checksum.algorithm, CHECKSUM_CRC64NVME);
	ck_assert(object.has_file_hash);
	write_file(path_of("f"), 6000); /* the file replaces the object that is there */
	ck_assert_msg(store_shown("b", &version, &err) == 0, "%s", err.text);
	ck_assert(fixture_holds(&fixture, "b", "k", span_of(noise, 6000)));
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT count(*) FROM versions"), 1);
}
END_TEST

START_TEST(test_what_nobody_named_goes_at_the_next_start)
{
	struct error err = {0};
	int64_t version = 0;
	write_file(path_of("f"), LARGE);
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(store_hidden(path_of("f"), &version, &err), 0);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT count(*) FROM versions"), 3);
	store_fixture_reopen(&fixture);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT count(*) FROM versions"), 0);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT count(*) FROM segments"), 0);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT count(*) FROM scratch_versions"), 0);
	ck_assert(!file_exists(path_of("f")));
}
END_TEST

static int tell_a_lie(struct change *change, struct db *db, struct error *err)
{
	struct version version;
	struct arena *const arena = arena_new(100000);
	(void)change;
	int result = version_find_sequence(db, 1, arena, &version, err) == 1 ? 0 : -1;
	memset(version.digest.bytes, 0x11, sizeof(version.digest.bytes));
	if (result == 0)
		result = version_update(db, &version, err); /* the row's checksum */
	arena_free(arena);
	return result != 0
		? -1
		: db_run_script(db,
			  "UPDATE versions SET digest = x'11111111111111111111111111111111'", err);
}

START_TEST(test_a_version_that_is_not_what_its_digest_says)
{
	struct error err = {0};
	int64_t version = 0;
	write_file(path_of("f"), 5000);
	ck_assert_int_eq(store_hidden(path_of("f"), &version, &err), 0);
	struct change lie = {.apply = tell_a_lie};
	ck_assert_int_eq(version, 1);
	ck_assert_int_eq(committer_run(store_committer(fixture.store), &lie, &err), 0);
	ck_assert_int_eq(scratch_fetch(fixture.store, version, path_of("to"), &err), -1);
	ck_assert_int_eq(err.kind, ERROR_CORRUPT);
	ck_assert_msg(strstr(err.text, "'k' is not what its digest says") != NULL, "%s", err.text);
	ck_assert(!file_exists(path_of("to")));
}
END_TEST

START_TEST(test_absent_things)
{
	struct error err = {0};
	int64_t version = 0;
	write_file(path_of("f"), 10);
	ck_assert_int_eq(store_hidden(path_of("absent"), &version, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NOT_FOUND);
	ck_assert_int_eq(store_shown("other", &version, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_BUCKET);
	ck_assert_int_eq(scratch_fetch(fixture.store, 77, path_of("to"), &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_KEY);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT count(*) FROM versions"), 0);
}
END_TEST

Suite *test_scratch_suite(void);
Suite *test_scratch_suite(void)
{
	Suite *const suite = suite_create("scratch");
	TCase *const tests = tcase_create("scratch");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, test_files_go_into_hidden_versions_and_back);
	tcase_add_test(tests, test_names_that_fit_into_no_folder_are_bad_input);
	tcase_add_test(tests, test_paths_are_hidden_from_clients);
	tcase_add_test(tests, test_a_hidden_version_is_no_object);
	tcase_add_test(tests, test_what_came_after_the_start_is_not_let_go);
	tcase_add_test(tests, test_a_visible_one_is);
	tcase_add_test(tests, test_what_nobody_named_goes_at_the_next_start);
	tcase_add_test(tests, test_a_version_that_is_not_what_its_digest_says);
	tcase_add_test(tests, test_absent_things);
	suite_add_tcase(suite, tests);
	return suite;
}
