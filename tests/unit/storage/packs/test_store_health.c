/* What a store may do at present, and how it describes that. */
#include "storage/packs/store_health.h"

#include <errno.h>
#include <string.h>

#include "tests/unit/unit.h"

static struct metrics *metrics;
static struct store_health *health;
static struct error err;

static void set_up(void)
{
	err = (struct error){0};
	metrics = metrics_new();
	health = store_health_new(NULL, metrics);
}

static void tear_down(void)
{
	store_health_free(health);
	metrics_free(metrics);
}

static void expect_text(const char *text)
{
	struct buffer out;
	buffer_init(&out, 4096);
	store_health_print(health, &out);
	ck_assert_str_eq(buffer_text(&out), text);
	buffer_release(&out);
}

static bool takes_writes(void)
{
	err = (struct error){0};
	bool takes = store_health_may_write(health, &err) == 0;
	ck_assert_int_eq(err.kind, takes ? ERROR_NONE : ERROR_READ_ONLY);
	return takes;
}

static void fail_with(enum error_kind kind, int number)
{
	const struct error why = {.kind = kind, .os_errno = number, .text = "cannot write"};
	store_health_note_failure(health, &why);
}

START_TEST(missing_packs_are_told)
{
	expect_text("ready\n");
	store_health_set_missing(health, 1, "1 of 2 had no file at the start: ab.pack.");
	ck_assert_int_eq(metrics_get(metrics, METRIC_PACKS_MISSING), 1);
	expect_text("ready\npacks missing: 1 of 2 had no file at the start: ab.pack.\n");
	ck_assert(takes_writes());
}
END_TEST

START_TEST(nothing_is_deleted_before_the_catalog_is_proven)
{
	ck_assert_int_eq(store_health_proof(health), STORE_UNPROVEN);
	ck_assert(!store_health_may_delete(health));
	ck_assert(!store_health_wait(health, 1));
	ck_assert(takes_writes());
	store_health_set_proof(health, STORE_PROVEN, NULL);
	ck_assert(store_health_may_delete(health) && store_health_wait(health, 0));
	expect_text("ready\n");
	store_health_set_proof(health, STORE_DAMAGED, "table versions: a page is lost");
	ck_assert(!store_health_may_delete(health) && store_health_wait(health, 0));
	ck_assert_int_eq(metrics_get(metrics, METRIC_CATALOG_DAMAGED), 1);
	ck_assert(takes_writes());
	expect_text("ready\ndamaged: table versions: a page is lost\n");
	store_health_set_proof(health, STORE_UNPROVEN, NULL);
	ck_assert(!store_health_may_delete(health) && !store_health_wait(health, 0));
	ck_assert_int_eq(metrics_get(metrics, METRIC_CATALOG_DAMAGED), 0);
	store_health_set_proof(health, STORE_PROVEN, NULL);
	ck_assert(store_health_may_delete(health));
	expect_text("ready\n");
}
END_TEST

START_TEST(a_store_that_is_only_read_stays_so)
{
	store_health_set_proof(health, STORE_PROVEN, NULL);
	store_health_set_read_only(health, "because.");
	ck_assert(!takes_writes() && !store_health_may_delete(health));
	ck_assert_msg(strstr(err.text, "because.") != NULL, "%s", err.text);
	ck_assert_int_eq(metrics_get(metrics, METRIC_READ_ONLY), 1);
	expect_text("ready\nread-only: because.\n");
	ck_assert(!store_health_wants_try(health)); /* a write would not help */
	store_health_note_success(health);
	fail_with(ERROR_READ_ONLY, EROFS);
	store_health_note_success(health);
	ck_assert(!takes_writes());
	expect_text("ready\nread-only: because.\n");
}
END_TEST

START_TEST(a_disk_that_takes_no_writes_is_tried_until_it_does)
{
	store_health_set_proof(health, STORE_PROVEN, NULL);
	fail_with(ERROR_READ_ONLY, EROFS);
	ck_assert(!takes_writes() && !store_health_may_delete(health));
	ck_assert_int_eq(metrics_get(metrics, METRIC_READ_ONLY), 1);
	ck_assert(store_health_wants_try(health));
	store_health_note_success(health);
	ck_assert(takes_writes() && store_health_may_delete(health));
	ck_assert_int_eq(metrics_get(metrics, METRIC_READ_ONLY), 0);
	ck_assert(!store_health_wants_try(health));
	expect_text("ready\n");
}
END_TEST

/* Only this errno counts: other failures must not refuse the next write. */
START_TEST(other_failures_make_nothing_read_only)
{
	fail_with(ERROR_NO_SPACE, ENOSPC);
	fail_with(ERROR_IO, EIO);
	fail_with(ERROR_READ_ONLY, 0); /* from a store that is already read-only */
	fail_with(ERROR_IO, EROFS);
	ck_assert(takes_writes());
	ck_assert_int_eq(metrics_get(metrics, METRIC_READ_ONLY), 0);
}
END_TEST

START_TEST(a_try_is_made_when_asked_for_unless_a_write_went_well_just_now)
{
	store_health_note_success(health);
	store_health_ask_try(health);
	ck_assert(!store_health_wants_try(health));
	fail_with(ERROR_READ_ONLY, EROFS);
	ck_assert(store_health_wants_try(health));
}
END_TEST

START_TEST(a_try_that_was_asked_for_ends_with_a_write)
{
	store_health_ask_try(health);
	ck_assert(store_health_wants_try(health));
	ck_assert(takes_writes());
	store_health_note_success(health);
	ck_assert(!store_health_wants_try(health));
}
END_TEST

/* A reason for good replaces an earlier one. */
START_TEST(the_reason_for_good_is_the_one_that_is_told)
{
	fail_with(ERROR_READ_ONLY, EROFS);
	store_health_set_read_only(health, "because.");
	expect_text("ready\nread-only: because.\n");
	store_health_note_success(health);
	ck_assert(!takes_writes());
	ck_assert_int_eq(metrics_get(metrics, METRIC_READ_ONLY), 1);
}
END_TEST

static bool is_writable(void)
{
	return store_health_check_write(health, &err) == 0;
}

/* The next change is tried all the same, and its success ends it. */
START_TEST(a_try_that_fails_is_told_until_a_write_succeeds)
{
	const struct error full = {.kind = ERROR_NO_SPACE};
	const struct error lost = {.kind = ERROR_DAMAGED, .text = "/data/catalog.db is gone"};
	store_health_note_try(health, &full);
	ck_assert(is_writable());
	store_health_note_try(health, &lost);
	ck_assert(!is_writable());
	ck_assert_int_eq(err.kind, ERROR_DAMAGED);
	ck_assert_ptr_null(strstr(err.text, "/data")); /* anybody may be told */
	ck_assert(takes_writes());
	ck_assert(store_health_wants_try(health));
	ck_assert_int_eq(metrics_get(metrics, METRIC_WRITES_FAIL), 1);
	expect_text("ready\nwrites fail: no change can be written to the catalog (writes_fail in"
		    " the log).\n");
	store_health_note_try(health, NULL);
	ck_assert(is_writable() && !store_health_wants_try(health));
	ck_assert_int_eq(metrics_get(metrics, METRIC_WRITES_FAIL), 0);
	expect_text("ready\n");
}
END_TEST

START_TEST(a_catalog_without_its_name_is_told)
{
	store_health_set_unnamed(health, true);
	struct buffer out;
	buffer_init(&out, 4096);
	store_health_print(health, &out);
	ck_assert_int_eq(metrics_get(metrics, METRIC_CATALOG_LOST), 1);
	ck_assert_ptr_nonnull(
		strstr(buffer_text(&out), "\ncatalog lost: catalog.db was deleted or replaced"));
	buffer_release(&out);
	store_health_set_unnamed(health, false);
	ck_assert_int_eq(metrics_get(metrics, METRIC_CATALOG_LOST), 0);
	expect_text("ready\n");
}
END_TEST

Suite *test_store_health_suite(void);
Suite *test_store_health_suite(void)
{
	Suite *suite = suite_create("store_health");
	TCase *tests = tcase_create("store_health");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, missing_packs_are_told);
	tcase_add_test(tests, nothing_is_deleted_before_the_catalog_is_proven);
	tcase_add_test(tests, a_store_that_is_only_read_stays_so);
	tcase_add_test(tests, a_disk_that_takes_no_writes_is_tried_until_it_does);
	tcase_add_test(tests, other_failures_make_nothing_read_only);
	tcase_add_test(tests, a_try_is_made_when_asked_for_unless_a_write_went_well_just_now);
	tcase_add_test(tests, a_try_that_was_asked_for_ends_with_a_write);
	tcase_add_test(tests, the_reason_for_good_is_the_one_that_is_told);
	tcase_add_test(tests, a_try_that_fails_is_told_until_a_write_succeeds);
	tcase_add_test(tests, a_catalog_without_its_name_is_told);
	suite_add_tcase(suite, tests);
	return suite;
}
