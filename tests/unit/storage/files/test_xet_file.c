#include "storage/files/xet_file.h"

#include "tests/unit/unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "storage/core/pack_row.h"
#include "storage/start/catalog.h"
#include "storage/versions/part.h"

enum { SEGMENTS = 200, SEGMENT_BYTES = 1000, NOW_MS = 1000000 };

Suite *test_xet_file_suite(void);

static char *folder;
static struct db *db;
static struct segment segments[SEGMENTS];

static void set_up(void)
{
	struct error err = {0};
	char path[512];
	struct pack_record pack = {.state = PACK_SEALED, .chunks = SEGMENTS};
	folder = unit_scratch_make();
	snprintf(path, sizeof(path), "%s/catalog.db", folder);
	db = catalog_open(path, &err);
	ck_assert_msg(db != NULL, "%s", err.text);
	memset(pack.id.bytes, 'p', PACK_ID_BYTES);
	ck_assert_int_eq(pack_row_record(db, &pack, &err), 0);
	for (uint32_t i = 0; i < SEGMENTS; i++)
		segments[i] = (struct segment){pack.id, i, 1, SEGMENT_BYTES};
	ck_assert_int_eq(db_begin(db, &err), 0);
}

static void tear_down(void)
{
	db_rollback(db);
	db_close(db);
	unit_scratch_remove(folder);
}

static int64_t rows(const char *sql)
{
	struct error err = {0};
	int64_t count = -1;
	ck_assert_int_eq(db_find_i64(db, sql, &count, &err), 1);
	return count;
}

static const char SQL_FILES[] = "SELECT COUNT(*) FROM xet_files";
static const char SQL_GRANTS[] = "SELECT COUNT(*) FROM xet_grants";
static const char SQL_SEGMENTS[] = "SELECT COUNT(*) FROM segments";
static const char SQL_SETS[] = "SELECT COUNT(*) FROM part_sets WHERE is_dead = 0";

static struct chunk_id hash_of(uint8_t byte)
{
	struct chunk_id id;
	memset(id.bytes, byte, CHUNK_ID_BYTES);
	return id;
}

static struct xet_file add(uint8_t byte, size_t count, int64_t expires_ms)
{
	struct error err = {0};
	struct xet_file file = {
		.hash = hash_of(byte), .size = count * SEGMENT_BYTES, .expires_ms = expires_ms};
	ck_assert_msg(
		part_set_add_single(db, segments, count, &file.part_set, &file.contents, &err) == 0,
		"%s", err.text);
	ck_assert_msg(xet_file_row_add(db, &file, &err) == 0, "%s", err.text);
	return file;
}

START_TEST(a_file_is_found_with_its_segments)
{
	struct error err = {0};
	const struct xet_file added = add(1, 3, NOW_MS);
	struct xet_file found;
	ck_assert_int_gt(added.part_set, 0);
	ck_assert_int_eq(xet_file_row_find(db, &added.hash, &found, &err), 1);
	ck_assert_uint_eq(found.size, 3 * SEGMENT_BYTES);
	ck_assert_int_eq(found.expires_ms, NOW_MS);
	ck_assert(!found.is_made);
	struct part_range range = {.offset = 1500, .length = 1000};
	ck_assert_msg(
		part_set_load(db, found.part_set, found.size, found.contents, &range, &err) == 0,
		"%s", err.text);
	ck_assert_uint_eq(range.segment_count, 2);
	ck_assert_uint_eq(range.segments[0].first, 1);
	ck_assert_uint_eq(range.skip, 500);
	free(range.segments);
	const struct chunk_id other = hash_of(2);
	ck_assert_int_eq(xet_file_row_find(db, &other, &found, &err), 0);
}
END_TEST

START_TEST(a_file_has_one_row)
{
	struct error err = {0};
	const struct xet_file file = add(1, 1, NOW_MS);
	ck_assert_int_eq(xet_file_row_add(db, &file, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_EXISTS);
}
END_TEST

START_TEST(files_that_nothing_else_holds_are_counted)
{
	struct error err = {0};
	uint64_t bytes = 1;
	ck_assert(xet_file_unused_bytes(db, &bytes, &err) == 0 && bytes == 0);
	const struct xet_file file = add(1, 3, NOW_MS);
	add(2, 1, NOW_MS);
	ck_assert(xet_file_unused_bytes(db, &bytes, &err) == 0 && bytes == 4 * SEGMENT_BYTES);
	/* as a version with its bytes does */
	ck_assert_int_eq(part_set_share(db, file.part_set, &err), 0);
	ck_assert(xet_file_unused_bytes(db, &bytes, &err) == 0 && bytes == SEGMENT_BYTES);
}
END_TEST

static size_t list_unused(const struct chunk_id *after, struct chunk_id *out, size_t capacity)
{
	struct error err = {0};
	size_t count;
	ck_assert_msg(
		xet_file_list_unused(db, after, out, capacity, &count, &err) == 0, "%s", err.text);
	return count;
}

/* Without files that a version shares, made files, and files that a shard is still writing. */
START_TEST(files_that_nothing_else_holds_are_listed)
{
	struct error err = {0};
	struct chunk_id found[4];
	const struct chunk_id first = {{0}};
	const struct xet_file shared = add(1, 1, NOW_MS);
	struct xet_file made = {
		.hash = hash_of(2), .size = SEGMENT_BYTES, .is_made = true, .expires_ms = NOW_MS};
	struct xet_file growing = {.hash = hash_of(3), .size = SEGMENT_BYTES, .expires_ms = NOW_MS};
	ck_assert_int_eq(part_set_share(db, shared.part_set, &err), 0);
	ck_assert_int_eq(
		part_set_add_single(db, segments, 1, &made.part_set, &made.contents, &err), 0);
	ck_assert_int_eq(xet_file_row_add(db, &made, &err), 0);
	ck_assert_int_eq(
		part_set_add_single(db, segments, 1, &growing.part_set, &growing.contents, &err),
		0);
	growing.contents = 0;
	ck_assert_int_eq(xet_file_row_add(db, &growing, &err), 0);
	ck_assert_uint_eq(list_unused(&first, found, 4), 0);
	const struct xet_file unused[] = {add(5, 1, NOW_MS), add(4, 1, NOW_MS)};
	ck_assert_uint_eq(list_unused(&first, found, 4), 2);
	ck_assert(chunk_id_equal(&found[0], &unused[1].hash) &&
		chunk_id_equal(&found[1], &unused[0].hash));
	ck_assert_uint_eq(list_unused(&first, found, 1), 1);
	ck_assert_uint_eq(list_unused(&found[0], found, 1), 1);
	ck_assert(chunk_id_equal(&found[0], &unused[0].hash));
}
END_TEST

START_TEST(only_a_file_that_nothing_else_holds_is_ended)
{
	struct error err = {0};
	struct xet_file_damage damage = {0};
	struct xet_file found;
	const struct xet_file shared = add(1, 3, NOW_MS);
	const struct xet_file unused = add(2, 2, NOW_MS);
	ck_assert_int_eq(part_set_share(db, shared.part_set, &err), 0); /* since it was listed */
	ck_assert_int_eq(xet_file_end_unused(db, &shared.hash, &damage, &err), 0);
	ck_assert_int_eq(xet_file_row_find(db, &shared.hash, &found, &err), 1);
	ck_assert_int_eq(xet_file_end_unused(db, &unused.hash, &damage, &err), 0);
	ck_assert_int_eq(xet_file_row_find(db, &unused.hash, &found, &err), 0);
	ck_assert_int_eq(rows(SQL_SEGMENTS), 3);
	ck_assert_int_eq(xet_file_end_unused(db, &unused.hash, &damage, &err), 0); /* once more */
	ck_assert_uint_eq(damage.rows, 0);
}
END_TEST

START_TEST(a_damaged_row_is_noticed)
{
	struct error err = {0};
	struct xet_file found;
	const struct xet_file file = add(1, 2, NOW_MS);
	ck_assert_int_eq(db_run_script(db, "UPDATE xet_files SET size = size + 1", &err), 0);
	ck_assert_int_eq(xet_file_row_find(db, &file.hash, &found, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_CORRUPT);
}
END_TEST

START_TEST(a_touch_only_adds_time)
{
	struct error err = {0};
	struct xet_file found;
	const struct xet_file file = add(1, 1, NOW_MS);
	ck_assert_int_eq(xet_file_row_touch(db, &file.hash, true, NOW_MS - 1, &err), 0);
	ck_assert_int_eq(xet_file_row_find(db, &file.hash, &found, &err), 1);
	ck_assert_int_eq(found.expires_ms, NOW_MS);
	ck_assert(!found.is_made); /* a registered file stays one */
	ck_assert_int_eq(xet_file_row_touch(db, &file.hash, false, NOW_MS + 5, &err), 0);
	ck_assert_int_eq(xet_file_row_find(db, &file.hash, &found, &err), 1);
	ck_assert_int_eq(found.expires_ms, NOW_MS + 5);
}
END_TEST

START_TEST(a_made_file_that_is_registered_is_a_registered_one)
{
	struct error err = {0};
	struct xet_file found;
	struct xet_file made = {
		.hash = hash_of(3), .size = SEGMENT_BYTES, .is_made = true, .expires_ms = NOW_MS};
	ck_assert_int_eq(
		part_set_add_single(db, segments, 1, &made.part_set, &made.contents, &err), 0);
	ck_assert_int_eq(xet_file_row_add(db, &made, &err), 0);
	ck_assert_int_eq(xet_file_row_touch(db, &made.hash, true, NOW_MS, &err), 0);
	ck_assert_int_eq(xet_file_row_find(db, &made.hash, &found, &err), 1);
	ck_assert(found.is_made);
	ck_assert_int_eq(xet_file_row_touch(db, &made.hash, false, NOW_MS, &err), 0);
	ck_assert_int_eq(xet_file_row_find(db, &made.hash, &found, &err), 1);
	ck_assert(!found.is_made);
}
END_TEST

static bool valid(uint8_t file, int64_t bucket, const char *account, int64_t now_ms)
{
	struct error err = {0};
	const struct chunk_id hash = hash_of(file);
	const struct xet_grant grant = {
		.file = &hash, .bucket = bucket, .account = span_text(account)};
	bool is_valid = false;
	ck_assert_int_eq(xet_grant_row_valid(db, &grant, now_ms, &is_valid, &err), 0);
	return is_valid;
}

START_TEST(a_grant_opens_one_file_for_one_account_in_one_bucket)
{
	struct error err = {0};
	const struct chunk_id hash = hash_of(1);
	const struct xet_grant grant = {.file = &hash, .bucket = 7, .account = span_text("main")};
	ck_assert_int_eq(xet_grant_row_put(db, &grant, NOW_MS, &err), 0);
	ck_assert(valid(1, 7, "main", NOW_MS - 1));
	ck_assert(!valid(1, 7, "main", NOW_MS));
	ck_assert(!valid(1, 8, "main", NOW_MS - 1));
	ck_assert(!valid(1, 7, "else", NOW_MS - 1));
	ck_assert(!valid(2, 7, "main", NOW_MS - 1));
	ck_assert_int_eq(xet_grant_row_put(db, &grant, NOW_MS - 10, &err), 0);
	ck_assert(valid(1, 7, "main", NOW_MS - 1)); /* never shortened */
	ck_assert_int_eq(xet_grant_row_put(db, &grant, NOW_MS + 10, &err), 0);
	ck_assert(valid(1, 7, "main", NOW_MS));
	ck_assert_int_eq(rows(SQL_GRANTS), 1);
}
END_TEST

/* Returns how many damaged rows were removed. */
static uint64_t sweep(int64_t now_ms)
{
	struct error err = {0};
	struct xet_file_damage damage = {0};
	bool found = true;
	for (int i = 0; i < 100 && found; i++)
		ck_assert_msg(
			xet_file_sweep(db, now_ms, &found, &damage, &err) == 0, "%s", err.text);
	ck_assert(!found);
	return damage.rows;
}

static bool has_work(int64_t now_ms)
{
	struct error err = {0};
	bool found = false;
	ck_assert_int_eq(xet_file_sweep_has_work(db, now_ms, &found, &err), 0);
	return found;
}

START_TEST(what_has_expired_is_swept_with_its_segments)
{
	struct error err = {0};
	for (uint8_t i = 0; i < 40; i++) {
		const struct chunk_id hash = hash_of(i);
		add(i, 2, i < 30 ? NOW_MS : NOW_MS + 1);
		const struct xet_grant grant = {
			.file = &hash, .bucket = 1, .account = span_text("main")};
		ck_assert_int_eq(
			xet_grant_row_put(db, &grant, i < 30 ? NOW_MS : NOW_MS + 1, &err), 0);
	}
	ck_assert(!has_work(NOW_MS - 1));
	ck_assert(has_work(NOW_MS));
	ck_assert_uint_eq(sweep(NOW_MS), 0);
	ck_assert(!has_work(NOW_MS));
	ck_assert_int_eq(rows(SQL_FILES), 10);
	ck_assert_int_eq(rows(SQL_GRANTS), 10);
	ck_assert_int_eq(rows(SQL_SEGMENTS), 20);
	ck_assert_int_eq(rows(SQL_SETS), 10);
}
END_TEST

START_TEST(a_set_that_a_version_shares_outlives_its_file)
{
	struct error err = {0};
	const struct xet_file file = add(1, SEGMENTS, NOW_MS);
	ck_assert_int_eq(part_set_share(db, file.part_set, &err), 0);
	sweep(NOW_MS);
	ck_assert_int_eq(rows(SQL_FILES), 0);
	ck_assert_int_eq(rows(SQL_SEGMENTS), SEGMENTS);
	ck_assert_int_eq(part_set_drop(db, file.part_set, &err), 0);
	ck_assert_int_eq(rows(SQL_SETS), 0); /* large: marked, the sweeper of sets removes it */
	bool more = true;
	while (more)
		ck_assert_int_eq(part_set_sweep(db, &more, &err), 0);
	ck_assert_int_eq(rows(SQL_SEGMENTS), 0);
	ck_assert_int_eq(rows("SELECT COUNT(*) FROM parts"), 0);
}
END_TEST

/* The set is removed with the row if the damage leaves no doubt that it is the row's. */
static const struct {
	const char *sql;
	bool keeps_set;
} damages[] = {
	{"UPDATE xet_files SET size = size + 1 WHERE expires_ms = 999999", false},
	{"UPDATE xet_files SET hash = x'0201' WHERE expires_ms = 999999", false},
	{"UPDATE xet_files SET hash = zeroblob(2000) WHERE expires_ms = 999999", false},
	{"UPDATE xet_files SET sum = sum + 1 WHERE expires_ms = 999999", false},
	{"UPDATE xet_files SET contents = contents + 1 WHERE expires_ms = 999999", true},
	{"UPDATE xet_files SET part_set = part_set + 1 WHERE expires_ms = 999999", true},
	{"UPDATE xet_files SET part_set = 999 WHERE expires_ms = 999999", true},
	{"UPDATE xet_files SET part_set = -1 WHERE expires_ms = 999999", true},
};

START_TEST(a_damaged_row_holds_no_other_up)
{
	struct error err = {0};
	struct xet_file found;
	for (uint8_t i = 0; i < 20; i++)
		add(i, 2, i == 5 ? NOW_MS - 1 : NOW_MS);
	const struct xet_file kept = add(30, 3, NOW_MS + 1);
	ck_assert_int_eq(db_run_script(db, damages[_i].sql, &err), 0);
	ck_assert_uint_eq(sweep(NOW_MS), 1);
	ck_assert_uint_eq(sweep(NOW_MS), 0);
	ck_assert_int_eq(rows(SQL_FILES), 1);
	ck_assert_int_eq(rows(SQL_SETS), damages[_i].keeps_set ? 2 : 1);
	ck_assert_int_eq(rows(SQL_SEGMENTS), damages[_i].keeps_set ? 5 : 3);
	ck_assert_int_eq(xet_file_row_find(db, &kept.hash, &found, &err), 1);
	const struct xet_file anew = add(5, 2, NOW_MS + 1);
	ck_assert_int_eq(xet_file_row_find(db, &anew.hash, &found, &err), 1);
}
END_TEST

/* A second call restores the byte. Two bits, because one flipped bit would be mended. */
static void flip_two_bits(const char *path, off_t at)
{
	uint8_t byte;
	const int fd = open(path, O_RDWR);
	ck_assert_int_eq(pread(fd, &byte, 1, at), 1);
	byte ^= 0x11;
	ck_assert_int_eq(pwrite(fd, &byte, 1, at), 1);
	close(fd);
}

START_TEST(a_page_that_cannot_be_read_judges_no_row)
{
	struct error err = {0};
	struct xet_file_damage damage = {0};
	char path[512];
	bool found = true;
	snprintf(path, sizeof(path), "%s/catalog.db", folder);
	add(5, 2, NOW_MS - 1);
	ck_assert_int_eq(db_run_script(db, damages[0].sql, &err), 0);
	const int64_t page = rows("SELECT rootpage FROM sqlite_schema WHERE name = 'parts'");
	ck_assert_int_eq(db_commit(db, &err), 0);
	db_close(db);
	flip_two_bits(path, (page - 1) * 4096 + 2000);
	db = catalog_open(path, &err);
	ck_assert_int_eq(db_begin(db, &err), 0);
	ck_assert_int_eq(xet_file_sweep(db, NOW_MS, &found, &damage, &err), -1);
	ck_assert_msg(err.kind == ERROR_DAMAGED, "%s", err.text);
	ck_assert_uint_eq(damage.rows, 0);
	ck_assert_int_eq(rows(SQL_FILES), 1);
	flip_two_bits(path, (page - 1) * 4096 + 2000);
	ck_assert_uint_eq(sweep(NOW_MS), 1);
	ck_assert_int_eq(rows(SQL_FILES), 0);
	ck_assert_int_eq(rows(SQL_SETS), 0);
}
END_TEST

START_TEST(a_damaged_made_row_makes_room_too)
{
	struct error err = {0};
	struct xet_file_damage damage = {0};
	struct xet_file found;
	for (uint8_t i = 0; i < 2; i++) {
		struct xet_file made = {.hash = hash_of(i),
			.size = SEGMENT_BYTES,
			.is_made = true,
			.expires_ms = NOW_MS + i};
		ck_assert_int_eq(
			part_set_add_single(db, segments, 1, &made.part_set, &made.contents, &err),
			0);
		ck_assert_int_eq(xet_file_row_add(db, &made, &err), 0);
	}
	ck_assert_int_eq(
		db_run_script(db, "UPDATE xet_files SET size = 5 WHERE expires_ms = 1000000", &err),
		0);
	ck_assert_int_eq(xet_file_made_oldest(db, &found, &damage, &err), 1);
	const struct chunk_id second = hash_of(1);
	ck_assert(chunk_id_equal(&found.hash, &second));
	ck_assert_uint_eq(damage.rows, 1);
	ck_assert_int_eq(damage.last.kind, ERROR_CORRUPT);
	ck_assert_int_eq(rows(SQL_SETS), 1);
}
END_TEST

Suite *test_xet_file_suite(void)
{
	Suite *const suite = suite_create("xet_file");
	TCase *const cases = tcase_create("rows");
	tcase_add_checked_fixture(cases, set_up, tear_down);
	tcase_add_test(cases, a_file_is_found_with_its_segments);
	tcase_add_test(cases, a_file_has_one_row);
	tcase_add_test(cases, files_that_nothing_else_holds_are_counted);
	tcase_add_test(cases, files_that_nothing_else_holds_are_listed);
	tcase_add_test(cases, only_a_file_that_nothing_else_holds_is_ended);
	tcase_add_test(cases, a_damaged_row_is_noticed);
	tcase_add_test(cases, a_touch_only_adds_time);
	tcase_add_test(cases, a_made_file_that_is_registered_is_a_registered_one);
	tcase_add_test(cases, a_grant_opens_one_file_for_one_account_in_one_bucket);
	tcase_add_test(cases, what_has_expired_is_swept_with_its_segments);
	tcase_add_test(cases, a_set_that_a_version_shares_outlives_its_file);
	tcase_add_loop_test(
		cases, a_damaged_row_holds_no_other_up, 0, sizeof(damages) / sizeof(damages[0]));
	tcase_add_test(cases, a_page_that_cannot_be_read_judges_no_row);
	tcase_add_test(cases, a_damaged_made_row_makes_room_too);
	suite_add_tcase(suite, cases);
	return suite;
}
