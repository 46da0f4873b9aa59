/* A store starts although the tables for its caches, or for its cleanup, cannot be read. It serves,
 * and deletes nothing. */
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "storage/core/store.h"
#include "storage/packs/store_health.h"
#include "storage/run_tables/path_hold.h"
#include "storage/runs/step_keep.h"
#include "tests/unit/storage/store_fixture.h"

enum { PAGE_BYTES = 4096, WAIT_MS = 60000 };

static struct store_fixture fixture;
static struct error err;

static void set_up(void)
{
	memset(&fixture, 0, sizeof fixture);
	store_fixture_open(&fixture);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "box", "main", &err), 0);
	ck_assert_int_eq(fixture_put(fixture.store, "box", "k", span_text("bytes"), &err), 0);
}

static void tear_down(void)
{
	store_fixture_close(&fixture);
}

static void spoil_table(const char *table)
{
	static const uint8_t zeros[PAGE_BYTES - 8];
	char sql[128];
	snprintf(sql, sizeof sql, "SELECT rootpage FROM sqlite_schema WHERE name = '%s'", table);
	const int64_t page = fixture_count(fixture.store, sql);
	store_fixture_stop(&fixture);
	char *path = store_fixture_path(&fixture, "catalog.db");
	const int fd = open(path, O_RDWR);
	ck_assert_int_eq(
		pwrite(fd, zeros, sizeof zeros, (off_t)(page - 1) * PAGE_BYTES), sizeof zeros);
	close(fd);
	free(path);
	fixture.is_damaged = true;
	store_fixture_start(&fixture);
}

static const char *const tables[] = {"replicas", "bucket_documents", "scratch_versions"};

START_TEST(a_table_that_cannot_be_read_keeps_nobody_from_the_rest)
{
	spoil_table(tables[_i]);
	ck_assert(store_health_wait(store_health(fixture.store), WAIT_MS));
	ck_assert_int_eq(store_health_proof(store_health(fixture.store)), STORE_DAMAGED);
	ck_assert(!store_may_delete(fixture.store));
	ck_assert(fixture_holds(&fixture, "box", "k", span_text("bytes")));
	ck_assert_msg(fixture_put(fixture.store, "box", "new", span_text("more"), &err) == 0, "%s",
		err.text);
}
END_TEST

/* Rows that a start could not load stay unknown, even if the catalog is sound afterwards. */
START_TEST(steps_stay_while_leases_are_unknown)
{
	const struct run_row run = {.created_ms = 0};
	fixture.clock.now_ms += 2 * PATH_HOLD_MS;
	ck_assert(step_keep_is_known(fixture.store, &run));
	spoil_table("replicas");
	fixture.clock.now_ms += 2 * PATH_HOLD_MS;
	store_health_set_proof(store_health(fixture.store), STORE_PROVEN, NULL);
	ck_assert(!step_keep_is_known(fixture.store, &run));
}
END_TEST

Suite *test_start_damage_suite(void);
Suite *test_start_damage_suite(void)
{
	Suite *const suite = suite_create("start_damage");
	TCase *const tests = tcase_create("start_damage");
	tcase_set_timeout(tests, 60);
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_loop_test(tests, a_table_that_cannot_be_read_keeps_nobody_from_the_rest, 0,
		sizeof tables / sizeof *tables);
	tcase_add_test(tests, steps_stay_while_leases_are_unknown);
	suite_add_tcase(suite, tests);
	return suite;
}
