#include "storage/files/xet_content.h"

#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

#include "storage/core/pack_row.h"
#include "storage/files/xet_file.h"
#include "storage/start/catalog.h"
#include "storage/versions/part.h"
#include "storage/versions/version.h"

enum { BYTES = 5000, NOW_MS = 1000000, BUCKET = 7 };

static char *folder;
static struct db *db;
static struct segment segment;
static const struct chunk_id hash = {{1, 2, 3}};

static void set_up(void)
{
	struct error err = {0};
	char path[512];
	struct pack_record pack = {.state = PACK_SEALED, .chunks = 1};
	folder = unit_scratch_make();
	snprintf(path, sizeof(path), "%s/catalog.db", folder);
	db = catalog_open(path, &err);
	ck_assert_msg(db != NULL, "%s", err.text);
	memset(pack.id.bytes, 'p', PACK_ID_BYTES);
	ck_assert_int_eq(pack_row_record(db, &pack, &err), 0);
	segment = (struct segment){pack.id, 0, 1, BYTES};
	ck_assert_int_eq(db_begin(db, &err), 0);
}

static void tear_down(void)
{
	db_rollback(db);
	db_close(db);
	unit_scratch_remove(folder);
}

static void add_file(bool is_made)
{
	struct error err = {0};
	struct xet_file file = {
		.hash = hash, .size = BYTES, .is_made = is_made, .expires_ms = NOW_MS};
	ck_assert_int_eq(
		part_set_add_single(db, &segment, 1, &file.part_set, &file.contents, &err), 0);
	ck_assert_int_eq(xet_file_row_add(db, &file, &err), 0);
	const struct xet_grant grant = {
		.file = &hash, .bucket = BUCKET, .account = span_text("team")};
	ck_assert_int_eq(xet_grant_row_put(db, &grant, NOW_MS + 10, &err), 0);
}

static void add_version(const char *key, enum version_kind kind)
{
	struct error err = {0};
	struct version version = {.bucket = BUCKET,
		.key = span_text(key),
		.kind = kind,
		.size = kind == VERSION_INLINE ? 3 : BYTES,
		.has_file_hash = true,
		.file_hash = hash,
		.contents = 77};
	ck_assert_msg(
		version_push(db, BUCKET_UNVERSIONED, NULL, &version, &err) == 0, "%s", err.text);
}

static int find(int64_t bucket, const char *account, int64_t now_ms, struct xet_content *out)
{
	struct error err = {0};
	const struct xet_reach reach = {
		.bucket = bucket, .account = span_text(account), .now_ms = now_ms};
	const int result = xet_content_find(db, &reach, &hash, out, &err);
	ck_assert_int_eq(err.kind, result == 0 ? ERROR_NONE : ERROR_NOT_FOUND);
	return result;
}

START_TEST(a_registered_file_belongs_to_an_account_and_a_bucket)
{
	struct xet_content content;
	add_file(false);
	ck_assert_int_eq(find(BUCKET, "team", NOW_MS, &content), 0);
	ck_assert_int_eq(content.kind, XET_CONTENT_SEGMENTS);
	ck_assert_uint_eq(content.size, BYTES);
	ck_assert_int_gt(content.part_set, 0);
	ck_assert_int_eq(content.version, 0);
	ck_assert_int_ne(find(BUCKET + 1, "team", NOW_MS, &content), 0);
	ck_assert_int_ne(find(BUCKET, "others", NOW_MS, &content), 0);
	ck_assert_int_ne(find(BUCKET, NULL, NOW_MS, &content), 0);
	ck_assert_int_ne(find(BUCKET, "team", NOW_MS + 11, &content), 0);
}
END_TEST

START_TEST(a_version_opens_it_to_all_who_read_the_bucket)
{
	struct xet_content content;
	add_file(false);
	add_version("a", VERSION_SINGLE);
	ck_assert_int_eq(find(BUCKET, NULL, NOW_MS + 11, &content), 0);
	ck_assert_int_eq(content.kind, XET_CONTENT_SEGMENTS);
	ck_assert_int_gt(content.version, 0);
	ck_assert_int_eq(content.part_set, part_single_set(content.version));
	ck_assert_uint_eq(content.contents, 77);
	ck_assert_int_ne(find(BUCKET + 1, NULL, NOW_MS, &content), 0);
}
END_TEST

START_TEST(a_damaged_row_of_a_file_hides_no_version)
{
	struct error err = {0};
	struct xet_content content;
	const struct xet_reach reach = {
		.bucket = BUCKET, .account = span_text("team"), .now_ms = NOW_MS};
	add_file(false);
	ck_assert_int_eq(db_run_script(db, "UPDATE xet_files SET size = size + 1", &err), 0);
	ck_assert_int_eq(xet_content_find(db, &reach, &hash, &content, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_CORRUPT);
	add_version("a", VERSION_SINGLE);
	ck_assert_int_eq(find(BUCKET, "team", NOW_MS, &content), 0);
	ck_assert_int_gt(content.version, 0);
}
END_TEST

START_TEST(inline_bytes_are_named_by_their_version)
{
	struct xet_content content;
	add_version("a", VERSION_INLINE);
	ck_assert_int_eq(find(BUCKET, NULL, NOW_MS, &content), 0);
	ck_assert_int_eq(content.kind, XET_CONTENT_INLINE);
	ck_assert_uint_eq(content.size, 3);
	ck_assert_int_gt(content.version, 0);
}
END_TEST

/* A grant does not open a made file; a version does, and then its records are used. */
START_TEST(a_derived_version_has_what_was_made_of_it)
{
	struct xet_content content;
	add_version("a", VERSION_DERIVED);
	ck_assert_int_eq(find(BUCKET, NULL, NOW_MS, &content), 0);
	ck_assert_int_eq(content.kind, XET_CONTENT_DERIVED);
	add_file(true);
	ck_assert_int_ne(find(BUCKET + 1, "team", NOW_MS, &content), 0);
	ck_assert_int_eq(find(BUCKET, NULL, NOW_MS, &content), 0);
	ck_assert_int_eq(content.kind, XET_CONTENT_SEGMENTS);
	ck_assert(content.is_made);
	ck_assert_int_gt(content.part_set, 0);
	add_version("b", VERSION_SINGLE); /* bytes of its own come first */
	ck_assert_int_eq(find(BUCKET, NULL, NOW_MS, &content), 0);
	ck_assert(!content.is_made);
	ck_assert_int_lt(content.part_set, 0);
}
END_TEST

START_TEST(a_grant_of_a_made_file_opens_nothing)
{
	struct xet_content content;
	add_file(true);
	ck_assert_int_ne(find(BUCKET, "team", NOW_MS, &content), 0);
}
END_TEST

static int reads_open_keys(void *owner, struct span key, bool is_current, struct error *err)
{
	(void)owner;
	(void)is_current;
	if (span_equal_text(key, "open/unsure"))
		return error_set(err, ERROR_BUSY, "who knows");
	return span_starts(key, span_text("open/"));
}

START_TEST(versions_of_other_keys_are_passed_over_and_counted)
{
	struct xet_content content;
	struct error err = {0};
	size_t looks = 4;
	const struct xet_reach reach = {
		.bucket = BUCKET, .now_ms = NOW_MS, .may_read = reads_open_keys, .looks = &looks};
	add_version("open/derived", VERSION_DERIVED);
	add_version("secret/a", VERSION_SINGLE);
	ck_assert_int_eq(xet_content_find(db, &reach, &hash, &content, &err), 0);
	ck_assert_int_eq(content.kind, XET_CONTENT_DERIVED);
	ck_assert_uint_eq(looks, 2);
	add_version("secret/b", VERSION_SINGLE);
	ck_assert_int_ne(xet_content_find(db, &reach, &hash, &content, &err), 0);
	ck_assert_int_eq(err.kind, ERROR_NOT_FOUND);
	ck_assert_uint_eq(looks, 0);
	ck_assert_int_ne(xet_content_find(db, &reach, &hash, &content, &err), 0);
	ck_assert_uint_eq(looks, 0);
	looks = 4;
	add_version("open/unsure", VERSION_SINGLE); /* may_read fails for it */
	ck_assert_int_ne(xet_content_find(db, &reach, &hash, &content, &err), 0);
	ck_assert_int_eq(err.kind, ERROR_BUSY);
}
END_TEST

Suite *test_xet_content_suite(void);
Suite *test_xet_content_suite(void)
{
	Suite *const suite = suite_create("xet_content");
	TCase *const plain = tcase_create("plain");
	tcase_add_checked_fixture(plain, set_up, tear_down);
	tcase_add_test(plain, a_registered_file_belongs_to_an_account_and_a_bucket);
	tcase_add_test(plain, a_version_opens_it_to_all_who_read_the_bucket);
	tcase_add_test(plain, a_damaged_row_of_a_file_hides_no_version);
	tcase_add_test(plain, inline_bytes_are_named_by_their_version);
	tcase_add_test(plain, a_derived_version_has_what_was_made_of_it);
	tcase_add_test(plain, a_grant_of_a_made_file_opens_nothing);
	tcase_add_test(plain, versions_of_other_keys_are_passed_over_and_counted);
	suite_add_tcase(suite, plain);
	return suite;
}
