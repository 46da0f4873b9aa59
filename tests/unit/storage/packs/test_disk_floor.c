/* A disk that is nearly full: its last bytes are kept for deletes and the catalog. */
#include "storage/packs/disk_floor.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "storage/objects/scratch.h"
#include "storage/open/store_open.h"
#include "storage/packs/store_health.h"
#include "tests/unit/storage/store_fixture.h"
#include "tests/unit/storage/upload_fixture.h"
#include "tests/unit/storage/xorb_fixture.h"
#include "tests/unit/unit.h"

enum { FLOOR = 1000000, LARGE = 3 * 1024 * 1024 };

static struct store_fixture fixture;
static struct file_ops files;
static _Atomic uint64_t free_bytes;
static _Atomic int looks_left; /* then the disk is full; below 0: never */

static int told_space(const struct file_ops *ops, const char *path, struct file_space *out)
{
	(void)ops, (void)path;
	if (atomic_fetch_sub(&looks_left, 1) == 0)
		free_bytes = 0;
	*out = (struct file_space){.free = free_bytes, .all = UINT64_C(100) * FLOOR};
	return 0;
}

static void set_up(void)
{
	struct error err = {0};
	store_fixture_open(&fixture);
	store_close(fixture.store);
	files = *file_system();
	files.space = told_space;
	free_bytes = FLOOR;
	looks_left = -1;
	const struct store_options options = {.folder = fixture.folder,
		.files = &files,
		.clock = &fixture.clock.source,
		.disk_reserve = FLOOR};
	fixture.store = store_open(&options, &err);
	ck_assert_msg(fixture.store != NULL, "%s", err.text);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "bucket", "main", &err), 0);
}

static void tear_down(void)
{
	store_fixture_close(&fixture);
}

static int put(const char *key, size_t size, struct error *err)
{
	uint8_t *const bytes = fixture_noise(size, size);
	const int result = fixture_put(fixture.store, "bucket", key, span_of(bytes, size), err);
	free(bytes);
	return result;
}

static void expect_no_space(int result, const struct error *err)
{
	ck_assert_int_eq(result, -1);
	ck_assert_msg(err->kind == ERROR_NO_SPACE, "%s", err->text);
	ck_assert_msg(strstr(err->text, "kept for deletes") != NULL, "%s", err->text);
	ck_assert(disk_floor_refuses(err));
}

START_TEST(content_keeps_off_the_last_bytes_and_deletes_do_not)
{
	struct error err = {0};
	struct upload_ref ref;
	struct uploaded_part part;
	struct upload_create_params create = {.bucket = fixture_bucket("bucket"),
		.key = span_text("parts"),
		.initiator = span_text("main")};
	const struct xorb_sample sample = {.seed = 3, .chunks = 2, .chunk_bytes = 9000};
	bool inserted;
	ck_assert_int_eq(put("inline", 10, &err), 0);
	ck_assert_int_eq(put("large", LARGE, &err), 0);
	ck_assert_int_eq(fixture_upload_create(fixture.store, &create, &ref, &err), 0);
	free_bytes = FLOOR - 1;
	expect_no_space(put("inline", 11, &err), &err);
	expect_no_space(put("small", 50000, &err), &err);
	expect_no_space(put("large", LARGE + 1, &err), &err);
	expect_no_space(
		fixture_upload_put(fixture.store, &ref, 1, span_text("part"), NULL, &part, &err),
		&err);
	expect_no_space(xorb_sample_put(fixture.store, &sample, &inserted, &err), &err);
	ck_assert_ptr_null(scratch_open(fixture.store, &err));
	expect_no_space(-1, &err);
	ck_assert_int_eq(fixture_delete(fixture.store, "bucket", "large", NULL, &err), 0);
	free_bytes = FLOOR;
	ck_assert_int_eq(put("large", LARGE, &err), 0);
}
END_TEST

START_TEST(an_upload_under_way_stops_there_too)
{
	struct error err = {0};
	looks_left = 2; /* there is room at its start and before its first piece */
	expect_no_space(put("large", LARGE, &err), &err);
	free_bytes = FLOOR;
	ck_assert_int_eq(put("large", LARGE, &err), 0);
}
END_TEST

static int no_answer(const struct file_ops *ops, const char *path, struct file_space *out)
{
	(void)ops, (void)path, (void)out;
	return -1;
}

START_TEST(small_disks_keep_an_eighth_and_some_keep_nothing)
{
	struct error err = {0};
	struct disk_floor floor = {
		.files = &files, .folder = "folder", .bytes = UINT64_C(50) * FLOOR};
	free_bytes = UINT64_C(100) * FLOOR / 8;
	ck_assert_int_eq(disk_floor_check(&floor, &err), 0);
	free_bytes--;
	expect_no_space(disk_floor_check(&floor, &err), &err);
	ck_assert_int_eq(disk_floor_check(NULL, &err), 0);
	files.space = no_answer;
	ck_assert_int_eq(disk_floor_check(&floor, &err), 0);
	files.space = told_space;
	floor.bytes = 0;
	ck_assert_int_eq(disk_floor_check(&floor, &err), 0);
	floor = (struct disk_floor){
		.files = file_system(), .folder = "/no/such/folder", .bytes = 1};
	ck_assert_int_eq(disk_floor_check(&floor, &err), 0);
	floor.folder = fixture.folder;
	ck_assert_int_eq(disk_floor_check(&floor, &err), 0);
}
END_TEST

START_TEST(content_of_known_length_needs_its_room_beside)
{
	struct error err = {0};
	struct disk_floor floor = {.files = &files, .folder = "folder", .bytes = FLOOR};
	free_bytes = FLOOR + 1000;
	ck_assert_int_eq(disk_floor_check_room(&floor, 1000, &err), 0);
	expect_no_space(disk_floor_check_room(&floor, 1001, &err), &err);
	ck_assert_str_eq(err.text,
		"The server's disk is full: 1.0 MB are free, the last 1.0 MB are kept for deletes "
		"and the catalog (disk_reserve), and"
		" 0.0 MB are needed.");
	expect_no_space(disk_floor_check_room(&floor, UINT64_C(5) * FLOOR, &err), &err);
	ck_assert_msg(strstr(err.text, ", and 5.0 MB are needed.") != NULL, "%s", err.text);
	expect_no_space(disk_floor_check_room(&floor, UINT64_MAX, &err), &err);
	floor.bytes = 0;
	ck_assert_int_eq(disk_floor_check_room(&floor, FLOOR + 1000, &err), 0);
	expect_no_space(disk_floor_check_room(&floor, FLOOR + 1001, &err), &err);
}
END_TEST

/* Succeeds however little room there is. */
START_TEST(a_store_that_takes_no_writes_takes_no_content)
{
	struct error err = {0};
	struct store_health *health = store_health_new(NULL, NULL);
	const struct disk_floor floor = {.files = &files, .folder = "folder", .health = health};
	ck_assert_int_eq(disk_floor_check(&floor, &err), 0);
	store_health_set_read_only(health, "the disk takes no writes.");
	ck_assert_int_eq(disk_floor_check(&floor, &err), -1);
	ck_assert_ptr_nonnull(strstr(err.text, "the disk takes no writes."));
	store_health_free(health);
}
END_TEST

Suite *test_disk_floor_suite(void);
Suite *test_disk_floor_suite(void)
{
	Suite *const suite = suite_create("disk_floor");
	TCase *const tcase = tcase_create("disk_floor");
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_test(tcase, content_keeps_off_the_last_bytes_and_deletes_do_not);
	tcase_add_test(tcase, an_upload_under_way_stops_there_too);
	tcase_add_test(tcase, a_store_that_takes_no_writes_takes_no_content);
	tcase_add_test(tcase, small_disks_keep_an_eighth_and_some_keep_nothing);
	tcase_add_test(tcase, content_of_known_length_needs_its_room_beside);
	suite_add_tcase(suite, tcase);
	return suite;
}
