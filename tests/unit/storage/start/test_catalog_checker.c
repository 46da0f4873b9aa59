/* The check of the catalog after a start: damaged indexes are made again, after keys with two
 * current versions were settled; a damaged table is reported, and stays as it is. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "storage/buckets/account.h"
#include "storage/core/committer.h"
#include "storage/core/store.h"
#include "storage/db/db_internal.h"
#include "storage/packs/store_health.h"
#include "tests/unit/storage/store_fixture.h"

enum { PAGE_BYTES = 4096 };

static struct store_fixture fixture;
static struct metrics *metrics;
static struct error err;

static void put(const char *key, const char *text)
{
	ck_assert_msg(fixture_put(fixture.store, "bucket", key, span_text(text), &err) == 0, "%s",
		err.text);
}

static void set_up(void)
{
	fixture = (struct store_fixture){0};
	err = (struct error){0};
	metrics = metrics_new();
	fixture.metrics = metrics;
	store_fixture_open(&fixture);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "bucket", "main", &err), 0);
	put("key", "first");
	put("other", "bytes");
}

static void tear_down(void)
{
	store_fixture_close(&fixture);
	metrics_free(metrics);
}

static int64_t page_of(const char *name)
{
	char sql[160];
	snprintf(sql, sizeof sql, "SELECT rootpage FROM sqlite_schema WHERE name = '%s'", name);
	return fixture_count(fixture.store, sql);
}

static void spoil_page(int64_t page)
{
	static const uint8_t junk[16] = {0x5a, 0xa5, 0x5a, 0xa5};
	char *path = store_fixture_path(&fixture, "catalog.db");
	int fd = open(path, O_RDWR);
	ck_assert_int_eq(
		pwrite(fd, junk, sizeof junk, (page - 1) * PAGE_BYTES + 1000), sizeof junk);
	close(fd);
	free(path);
}

START_TEST(a_damaged_index_is_made_once_more)
{
	static const char *const indexes[] = {
		"versions_current", "versions_listed", "versions_by_id"};
	int64_t page = page_of(indexes[_i]);
	store_fixture_stop(&fixture);
	spoil_page(page);
	store_fixture_start(&fixture); /* waits until it is proven */
	ck_assert_int_ge(metrics_get(metrics, METRIC_CATALOG_MENDED), 1);
	ck_assert_int_eq(metrics_get(metrics, METRIC_CATALOG_DAMAGED), 0);
	ck_assert(fixture_holds(&fixture, "bucket", "key", span_text("first")));
	ck_assert(fixture_holds(&fixture, "bucket", "other", span_text("bytes")));
	put("key", "second");
	ck_assert(fixture_holds(&fixture, "bucket", "key", span_text("second")));
	ck_assert_int_eq(
		fixture_count(fixture.store, "SELECT count(*) FROM versions WHERE state = 1"), 2);
	char *scratch = store_fixture_path(&fixture, "catalog.db.rebuilt");
	ck_assert(!file_exists(scratch));
	free(scratch);
	store_fixture_reopen(&fixture);
	ck_assert(fixture_holds(&fixture, "bucket", "key", span_text("second")));
}
END_TEST

/* A row of keys names its account, and a row of grants its key: `grants` is copied before
 * `keys`. */
static void add_key(void)
{
	const struct grant grant = {span_text("bucket"), span_text("run/"), PERMISSION_READ};
	const struct key_record key = {.id = span_text("KEY"),
		.name = span_text("trainer"),
		.namespace = span_text("main"),
		.sealed_secret = span_of("\x00\x01\x02", 3),
		.token_hash = span_text("0123456789abcdef0123456789abcdef"),
		.grants = &grant,
		.grant_count = 1};
	ck_assert_msg(account_add_key(fixture.store, &key, &err) == 0, "%s", err.text);
}

START_TEST(keys_and_their_grants_come_through_a_rebuild)
{
	struct key_record *keys;
	size_t count;
	add_key();
	int64_t page = page_of("versions_current");
	store_fixture_stop(&fixture);
	spoil_page(page);
	store_fixture_start(&fixture); /* waits until it is proven */
	ck_assert_int_ge(metrics_get(metrics, METRIC_CATALOG_MENDED), 1);
	ck_assert_int_eq(account_list_keys(fixture.store, fixture.arena, &keys, &count, &err), 0);
	ck_assert(count == 1 && keys[0].grant_count == 1 && !keys[0].is_damaged);
	ck_assert(fixture_holds(&fixture, "bucket", "key", span_text("first")));
}
END_TEST

/* Empties the index of current versions and makes both versions of the key current, as after a PUT
 * that did not find the row before it. It edits the schema, which connections otherwise refuse. */
static int apply_two_current(struct change *change, struct db *db, struct error *why)
{
	static const char script[] =
		"DROP INDEX versions_current; UPDATE versions SET state = 1;"
		" CREATE UNIQUE INDEX versions_current ON versions (bucket, key) WHERE state = 17; PRAGMA writable_schema=ON;"
		" UPDATE sqlite_schema SET sql = 'CREATE UNIQUE INDEX versions_current ON versions (bucket, key) WHERE state = 1'"
		" WHERE name = 'versions_current'; PRAGMA writable_schema=RESET;";
	(void)change;
	sqlite3_db_config(db->handle, SQLITE_DBCONFIG_DEFENSIVE, 0, NULL);
	int result = db_run_script(db, script, why);
	sqlite3_db_config(db->handle, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	return result;
}

START_TEST(of_two_current_versions_the_newer_one_stays)
{
	const struct bucket_edit edit = {.sets_versioning = true, .versioning = BUCKET_VERSIONED};
	struct change change = {.apply = apply_two_current};
	ck_assert_int_eq(fixture_edit_bucket(fixture.store, "bucket", &edit, &err), 0);
	put("key", "second");
	put("key", "third");
	ck_assert_msg(
		committer_run(store_committer(fixture.store), &change, &err) == 0, "%s", err.text);
	store_fixture_reopen(&fixture);
	ck_assert(fixture_holds(&fixture, "bucket", "key", span_text("third")));
	ck_assert(fixture_holds(&fixture, "bucket", "other", span_text("bytes")));
	ck_assert_int_eq(
		fixture_count(fixture.store, "SELECT count(*) FROM versions WHERE state = 1"), 2);
	/* the others are kept as hidden versions */
	ck_assert_int_eq(
		fixture_count(fixture.store, "SELECT count(*) FROM versions WHERE state = 0"), 2);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT files FROM bucket_totals"), 2);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT bytes FROM bucket_totals"), 10);
	put("key", "fourth");
	ck_assert_int_eq(
		fixture_count(fixture.store, "SELECT count(*) FROM versions WHERE state = 1"), 2);
}
END_TEST

START_TEST(a_damaged_table_is_named_and_stays)
{
	int64_t page = page_of("bucket_grants");
	struct buffer said;
	store_fixture_stop(&fixture);
	spoil_page(page);
	fixture.is_damaged = true;
	store_fixture_start(&fixture);
	ck_assert_int_eq(store_health_proof(store_health(fixture.store)), STORE_DAMAGED);
	ck_assert_int_eq(metrics_get(metrics, METRIC_CATALOG_DAMAGED), 1);
	buffer_init(&said, 4096);
	store_health_print(store_health(fixture.store), &said);
	ck_assert_msg(strstr(buffer_text(&said), "table bucket_grants") != NULL, "%s",
		buffer_text(&said));
	buffer_release(&said);
	ck_assert(fixture_holds(&fixture, "bucket", "key", span_text("first")));
	put("key", "second"); /* requests that do not need the page work */
	store_fixture_reopen(&fixture);
	ck_assert_int_eq(metrics_get(metrics, METRIC_CATALOG_MENDED), 0);
	ck_assert_int_eq(store_health_proof(store_health(fixture.store)), STORE_DAMAGED);
	ck_assert(fixture_holds(&fixture, "bucket", "key", span_text("second")));
}
END_TEST

/* With a damaged catalog, too, the store soon notices a disk that takes writes again. */
START_TEST(a_damaged_catalog_keeps_no_write_from_being_tried)
{
	int64_t page = page_of("bucket_grants");
	const struct error why = {.kind = ERROR_READ_ONLY, .os_errno = EROFS};
	store_fixture_stop(&fixture);
	spoil_page(page);
	fixture.is_damaged = true;
	store_fixture_start(&fixture);
	store_health_note_failure(store_health(fixture.store), &why);
	int64_t deadline = 10 * 1000;
	while (store_health_may_write(store_health(fixture.store), &err) != 0 && deadline-- > 0)
		nanosleep(&(struct timespec){.tv_nsec = 1000 * 1000}, NULL);
	ck_assert_int_gt(deadline, 0);
	ck_assert_int_eq(store_health_proof(store_health(fixture.store)), STORE_DAMAGED);
}
END_TEST

Suite *test_catalog_checker_suite(void);
Suite *test_catalog_checker_suite(void)
{
	Suite *suite = suite_create("catalog_checker");
	TCase *tests = tcase_create("catalog_checker");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_loop_test(tests, a_damaged_index_is_made_once_more, 0, 3);
	tcase_add_test(tests, keys_and_their_grants_come_through_a_rebuild);
	tcase_add_test(tests, of_two_current_versions_the_newer_one_stays);
	tcase_add_test(tests, a_damaged_table_is_named_and_stays);
	tcase_add_test(tests, a_damaged_catalog_keeps_no_write_from_being_tried);
	suite_add_tcase(suite, tests);
	return suite;
}
