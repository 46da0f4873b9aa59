/* Keys whose rows or pages are damaged: each opens nothing, is listed and can be revoked, and the
 * other keys work. */
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "storage/buckets/account.h"
#include "storage/core/store.h"
#include "tests/unit/storage/store_fixture.h"

enum { PAGE_BYTES = 4096 };

static struct store_fixture fixture;
static struct error err;

static void add_key(const char *id, bool is_root)
{
	const struct grant grants[] = {
		{span_text("weights"), span_text("run/"), PERMISSION_READ | PERMISSION_LIST},
		{span_text("other"), span_text(""), PERMISSION_READ},
	};
	const struct key_record key = {.id = span_text(id),
		.name = span_text("trainer"),
		.namespace = span_text("main"),
		.sealed_secret = span_of("\x00\x01\x02", 3),
		.token_hash = span_text("0123456789abcdef0123456789abcdef"),
		.is_root = is_root,
		.grants = is_root ? NULL : grants,
		.grant_count = is_root ? 0 : 2};
	ck_assert_msg(account_add_key(fixture.store, &key, &err) == 0, "%s", err.text);
}

static void set_up(void)
{
	memset(&fixture, 0, sizeof fixture);
	store_fixture_open(&fixture);
	add_key("FIRST", false);
	add_key("SECOND", false);
	add_key("ROOT", true);
}

static void tear_down(void)
{
	store_fixture_close(&fixture);
}

static const struct key_record *find(const char *id)
{
	struct key_record *keys;
	size_t count;
	ck_assert_msg(account_list_keys(fixture.store, fixture.arena, &keys, &count, &err) == 0,
		"%s", err.text);
	for (size_t i = 0; i < count; i++)
		if (span_equal_text(keys[i].id, id))
			return &keys[i];
	return NULL;
}

static void is_sound(const char *id)
{
	const struct key_record *key = find(id);
	ck_assert_msg(key != NULL && !key->is_damaged, "%s", id);
}

static void is_damaged(const char *id)
{
	const struct key_record *key = find(id);
	ck_assert_msg(key != NULL && key->is_damaged && key->grant_count == 0, "%s", id);
}

static const struct {
	const char *sql;
	const char *name;
} row_damage[] = {
	{"UPDATE keys SET sealed_secret = x'000103' WHERE id = 1", "FIRST"},
	{"UPDATE keys SET token_hash = x'00' WHERE id = 1", "FIRST"},
	{"UPDATE keys SET name = x'00' WHERE id = 1", "FIRST"},
	{"UPDATE keys SET is_root = 1 WHERE id = 1", "FIRST"},
	{"UPDATE keys SET created_ms = created_ms + 1 WHERE id = 1", "FIRST"},
	{"UPDATE keys SET sum = 0 WHERE id = 1", "FIRST"},
	{"UPDATE keys SET key_id = x'4649525355' WHERE id = 1", "FIRSU"},
	{"UPDATE keys SET key_id = x'00ff' WHERE id = 1", "damaged-1"},
	{"UPDATE accounts SET namespace = CAST('other' AS BLOB) WHERE id = 1", "FIRST"},
	{"DELETE FROM grants WHERE key = 1", "FIRST"},
	{"DELETE FROM grants WHERE key = 1 AND ordinal = 1", "FIRST"},
	{"UPDATE grants SET permissions = 15 WHERE key = 1 AND ordinal = 0", "FIRST"},
	{"UPDATE grants SET prefix = x'' WHERE key = 1 AND ordinal = 0", "FIRST"},
	{"UPDATE grants SET bucket = 'secret' WHERE key = 1 AND ordinal = 0", "FIRST"},
	{"UPDATE grants SET ordinal = 9 WHERE key = 1 AND ordinal = 0", "FIRST"},
	{"INSERT INTO grants (key, ordinal, bucket, prefix, permissions) VALUES (1, 5, 'more', '', 1)",
		"FIRST"},
};

START_TEST(a_damaged_row_is_named_and_can_be_revoked)
{
	ck_assert_msg(fixture_run(fixture.store, row_damage[_i].sql, &err) == 0, "%s", err.text);
	is_damaged(row_damage[_i].name);
	if (strstr(row_damage[_i].sql, "accounts") == NULL) {
		is_sound("SECOND");
		is_sound("ROOT");
	}
	ck_assert_msg(account_revoke_key(fixture.store, span_text(row_damage[_i].name), &err) == 0,
		"%s", err.text);
	ck_assert_ptr_null(find(row_damage[_i].name));
	ck_assert_int_eq(
		fixture_count(fixture.store, "SELECT COUNT(*) FROM grants WHERE key = 1"), 0);
	add_key("FIRST", false);
}
END_TEST

START_TEST(a_sound_key_is_not_revoked_by_a_number)
{
	ck_assert_int_eq(account_revoke_key(fixture.store, span_text("damaged-1"), &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NOT_FOUND);
	is_sound("FIRST");
}
END_TEST

START_TEST(a_damaged_root_key_may_go_and_a_new_one_replaces_all)
{
	ck_assert_int_eq(
		fixture_run(fixture.store,
			"UPDATE keys SET is_root = 1, key_id = 'FALSE' WHERE id = 1", &err),
		0);
	add_key("ROOT2", true);
	ck_assert_ptr_null(find("FALSE"));
	ck_assert_ptr_null(find("ROOT"));
	is_sound("ROOT2");
	ck_assert_int_eq(
		fixture_run(fixture.store, "UPDATE keys SET sum = sum + 1 WHERE is_root = 1", &err),
		0);
	ck_assert_int_eq(account_revoke_key(fixture.store, span_text("ROOT2"), &err), 0);
	is_sound("SECOND");
}
END_TEST

/* Writes zeros into the page from `offset` on, while the store is closed. */
static void zero_page(int64_t page, size_t offset, size_t len)
{
	static const uint8_t zeros[PAGE_BYTES];
	char *path = store_fixture_path(&fixture, "catalog.db");
	fixture.is_damaged = true;
	store_fixture_stop(&fixture);
	int fd = open(path, O_WRONLY);
	ck_assert_int_eq(
		pwrite(fd, zeros, len, (page - 1) * PAGE_BYTES + (off_t)offset), (ssize_t)len);
	close(fd);
	free(path);
	store_fixture_start(&fixture);
}

static int64_t page_of(const char *table)
{
	char sql[128];
	snprintf(sql, sizeof sql, "SELECT rootpage FROM sqlite_schema WHERE name = '%s'", table);
	return fixture_count(fixture.store, sql);
}

/* Rows fill a page from its end. */
START_TEST(on_a_damaged_page_what_proves_itself_holds)
{
	zero_page(page_of("keys"), PAGE_BYTES - 60, 40);
	is_damaged("FIRST");
	is_sound("SECOND");
	is_sound("ROOT");
	ck_assert_int_eq(account_revoke_key(fixture.store, span_text("FIRST"), &err), 0);
	ck_assert_int_eq(account_revoke_key(fixture.store, span_text("SECOND"), &err), 0);
	ck_assert_ptr_null(find("FIRST"));
	ck_assert_ptr_null(find("SECOND"));
	is_sound("ROOT");
	ck_assert_int_eq(account_revoke_key(fixture.store, span_text("ROOT"), &err), -1);
	ck_assert_int_eq(err.kind, ERROR_DENIED);
	ck_assert_int_eq(account_revoke_key(fixture.store, span_text("NOBODY"), &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NOT_FOUND);
	store_fixture_reopen(&fixture);
	ck_assert_ptr_null(find("SECOND"));
	is_sound("ROOT");
}
END_TEST

/* The header of a page (8 bytes) is followed by the places of its rows, in the order of their
 * numbers. */
static void write_pointers(int64_t page, const unsigned order[3])
{
	uint8_t was[6];
	uint8_t now[6];
	char *path = store_fixture_path(&fixture, "catalog.db");
	fixture.is_damaged = true;
	store_fixture_stop(&fixture);
	int fd = open(path, O_RDWR);
	ck_assert_int_eq(pread(fd, was, sizeof was, (page - 1) * PAGE_BYTES + 8), sizeof was);
	for (size_t i = 0; i < 3; i++)
		memcpy(now + 2 * i, was + 2 * order[i], 2);
	ck_assert_int_eq(pwrite(fd, now, sizeof now, (page - 1) * PAGE_BYTES + 8), sizeof now);
	close(fd);
	free(path);
	store_fixture_start(&fixture);
}

static const unsigned orders[][3] = {{0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0},
	{0, 0, 0}, {1, 1, 1}, {2, 2, 2}, {0, 2, 0}, {2, 0, 2}};

START_TEST(a_page_whose_rows_are_in_disorder_stops_nobody)
{
	struct key_record *keys;
	size_t count;
	size_t sound = 0;
	write_pointers(page_of("keys"), orders[_i]);
	ck_assert_msg(account_list_keys(fixture.store, fixture.arena, &keys, &count, &err) == 0,
		"%s", err.text);
	for (size_t i = 0; i < count; i++)
		sound += !keys[i].is_damaged;
	ck_assert_uint_ge(sound, 1);
	ck_assert_uint_le(sound, 3);
	ck_assert_uint_le(count, 6);
}
END_TEST

/* The highest numbers that rows can have. */
START_TEST(a_key_of_the_last_row_is_the_last)
{
	ck_assert_int_eq(fixture_run(fixture.store,
				 "UPDATE keys SET id = 9223372036854775807 WHERE id = 3", &err),
		0);
	zero_page(page_of("keys"), 0, PAGE_BYTES);
	is_damaged("damaged-1");
}
END_TEST

START_TEST(a_page_of_which_nothing_is_left_stops_nobody)
{
	zero_page(page_of("keys"), 0, PAGE_BYTES);
	is_damaged("damaged-1");
	ck_assert_ptr_null(find("SECOND"));
	ck_assert_int_eq(account_revoke_key(fixture.store, span_text("damaged-1"), &err), -1);
	ck_assert_int_eq(err.kind, ERROR_DAMAGED);
}
END_TEST

START_TEST(keys_whose_grants_cannot_be_read_open_nothing)
{
	zero_page(page_of("grants"), 0, PAGE_BYTES);
	is_damaged("FIRST");
	is_damaged("SECOND");
	ck_assert_int_eq(account_revoke_key(fixture.store, span_text("SECOND"), &err), 0);
	ck_assert_ptr_null(find("SECOND"));
}
END_TEST

START_TEST(a_key_that_is_added_again_is_no_longer_revoked)
{
	ck_assert_int_eq(
		fixture_run(fixture.store,
			"INSERT INTO revoked_keys (key_id) VALUES (CAST('THIRD' AS BLOB))", &err),
		0);
	add_key("THIRD", false);
	is_sound("THIRD");
}
END_TEST

START_TEST(a_number_names_only_the_key_that_has_lost_its_name)
{
	ck_assert_int_eq(account_revoke_key(fixture.store, span_text("FIRST"), &err), 0);
	ck_assert_int_eq(
		fixture_run(fixture.store, "UPDATE keys SET key_id = x'00ff' WHERE id = 2", &err),
		0);
	is_damaged("damaged-2");
	ck_assert_int_eq(account_revoke_key(fixture.store, span_text("damaged-1"), &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NOT_FOUND);
	ck_assert_int_eq(account_revoke_key(fixture.store, span_text("damaged-2"), &err), 0);
	ck_assert_ptr_null(find("damaged-2"));
	add_key("THIRD", false);
	const int64_t row = fixture_count(fixture.store, "SELECT MAX(id) FROM keys");
	const char *const number = arena_format(fixture.arena, "damaged-%lld", (long long)row);
	ck_assert_int_eq(
		fixture_run(fixture.store,
			"UPDATE keys SET name = x'00' WHERE key_id = CAST('THIRD' AS BLOB)", &err),
		0);
	is_damaged("THIRD");
	ck_assert_int_eq(account_revoke_key(fixture.store, span_text(number), &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NOT_FOUND);
	is_damaged("THIRD");
}
END_TEST

Suite *test_key_damage_suite(void);
Suite *test_key_damage_suite(void)
{
	Suite *const suite = suite_create("key_damage");
	TCase *const tests = tcase_create("key_damage");
	tcase_set_timeout(tests, 60);
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_loop_test(tests, a_damaged_row_is_named_and_can_be_revoked, 0,
		sizeof row_damage / sizeof *row_damage);
	tcase_add_test(tests, a_sound_key_is_not_revoked_by_a_number);
	tcase_add_test(tests, a_damaged_root_key_may_go_and_a_new_one_replaces_all);
	tcase_add_test(tests, on_a_damaged_page_what_proves_itself_holds);
	tcase_add_loop_test(tests, a_page_whose_rows_are_in_disorder_stops_nobody, 0,
		sizeof orders / sizeof *orders);
	tcase_add_test(tests, a_key_of_the_last_row_is_the_last);
	tcase_add_test(tests, a_page_of_which_nothing_is_left_stops_nobody);
	tcase_add_test(tests, keys_whose_grants_cannot_be_read_open_nothing);
	tcase_add_test(tests, a_number_names_only_the_key_that_has_lost_its_name);
	tcase_add_test(tests, a_key_that_is_added_again_is_no_longer_revoked);
	suite_add_tcase(suite, tests);
	return suite;
}
