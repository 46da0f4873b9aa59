/* Walks over a real store, with days of one second on a clock that stands still. */
#include "storage/upkeep/lifecycle_worker.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "storage/buckets/lifecycle_cache.h"
#include "storage/buckets/lifecycle_document.h"
#include "storage/objects/object_change.h"
#include "storage/objects/object_read.h"
#include "storage/packs/store_health.h"
#include "storage/upkeep/lifecycle_change.h"
#include "tests/unit/storage/store_fixture.h"
#include "tests/unit/storage/upload_fixture.h"
#include "tests/unit/unit.h"

enum { DAY = 1000 };

#define TEXT(text)                                        \
	{                                                 \
		(const uint8_t *)(text), sizeof(text) - 1 \
	}

static struct store_fixture fixture;

static void setup(void)
{
	struct error err = {0};
	memset(&fixture, 0, sizeof(fixture));
	store_fixture_open(&fixture);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "bkt", "main", &err), 0);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "other", "main", &err), 0);
}

static void teardown(void)
{
	store_fixture_close(&fixture);
}

static void set_rules(const struct lifecycle_rule *rules, size_t count)
{
	const struct lifecycle lifecycle = {rules, count};
	struct error err = {0};
	struct buffer json;
	buffer_init(&json, 64 * 1024);
	lifecycle_document_print(&lifecycle, &json);
	const struct bucket_document document = {
		BUCKET_LIFECYCLE, count > 0 ? buffer_span(&json) : (struct span){NULL, 0}};
	const struct bucket_edit edit = {.documents = &document, .document_count = 1};
	ck_assert_int_eq(fixture_edit_bucket(fixture.store, "bkt", &edit, &err), 0);
	buffer_release(&json);
}

static void set_rule(struct lifecycle_rule rule)
{
	set_rules(&rule, 1);
}

static void set_versioning(enum bucket_versioning versioning)
{
	const struct bucket_edit edit = {.sets_versioning = true, .versioning = versioning};
	struct error err = {0};
	ck_assert_int_eq(fixture_edit_bucket(fixture.store, "bkt", &edit, &err), 0);
}

static void put(const char *key, const char *text)
{
	struct error err = {0};
	ck_assert_msg(
		fixture_put(fixture.store, "bkt", key, span_text(text), &err) == 0, "%s", err.text);
}

static void pass_days(unsigned days)
{
	fixture.clock.now_ms += (int64_t)days * DAY;
}

static uint64_t walk(void)
{
	struct error err = {0};
	uint64_t removed = 0;
	ck_assert_msg(
		lifecycle_worker_walk(fixture.store, DAY, &removed, &err) == 0, "%s", err.text);
	return removed;
}

static bool is_there(const char *key)
{
	struct error err = {0};
	struct object object;
	return fixture_find(&fixture, "bkt", key, &object, &err) == 0;
}

static int64_t versions(void)
{
	return fixture_count(fixture.store, "SELECT count(*) FROM versions WHERE state <> 0");
}

START_TEST(objects_expire)
{
	struct error err = {0};
	put("logs/a", "x");
	put("kept", "x");
	ck_assert_int_eq(fixture_put(fixture.store, "other", "logs/a", span_text("x"), &err), 0);
	ck_assert_uint_eq(walk(), 0);
	set_rule((struct lifecycle_rule){
		.enabled = true, .has_prefix = true, .prefix = TEXT("logs/"), .expire_days = 2});
	pass_days(1);
	put("logs/b", "x");
	ck_assert_uint_eq(walk(), 0);
	pass_days(1);
	ck_assert_uint_eq(walk(), 1);
	ck_assert(!is_there("logs/a") && is_there("logs/b") && is_there("kept"));
	pass_days(1);
	ck_assert_uint_eq(walk(), 1);
	ck_assert(!is_there("logs/b") && is_there("kept"));
	/* kept, as is that of the other bucket */
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT count(*) FROM versions"), 2);
}
END_TEST

START_TEST(a_damaged_row_keeps_no_other_from_expiring)
{
	struct error err = {0};
	put("a", "x");
	put("b", "x");
	if (_i == 1) {
		set_versioning(BUCKET_VERSIONED);
		put("a", "y");
		put("b", "y");
	}
	ck_assert_int_eq(fixture_run(fixture.store,
				 "UPDATE versions SET tags = x'ff' WHERE key = x'61'", &err),
		0);
	set_rule((struct lifecycle_rule){
		.enabled = true, .expire_days = _i == 0, .noncurrent_days = _i == 1});
	pass_days(2);
	ck_assert_uint_eq(walk(), 1);
	ck_assert_int_eq(
		fixture_count(fixture.store, "SELECT count(*) FROM versions WHERE key = x'62'"),
		_i);
}
END_TEST

/* The null version below the current one cannot be read. In a suspended bucket a marker replaces
 * it. */
START_TEST(a_damaged_older_row_keeps_no_other_key_from_expiring)
{
	struct error err = {0};
	uint64_t removed = 0;
	const char *const keys[] = {"a", "b", "c"};
	for (size_t i = 0; i < 3; i++)
		put(keys[i], "null");
	set_versioning(BUCKET_VERSIONED);
	for (size_t i = 0; i < 3; i++)
		put(keys[i], "with an id");
	set_versioning(BUCKET_SUSPENDED);
	ck_assert_int_eq(
		fixture_run(fixture.store,
			"UPDATE versions SET size = size + 1 WHERE key = x'62' AND state = 2",
			&err),
		0);
	set_rule((struct lifecycle_rule){.enabled = true, .expire_days = 1});
	pass_days(2);
	ck_assert_int_eq(lifecycle_worker_walk(fixture.store, DAY, &removed, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_CORRUPT);
	ck_assert_uint_eq(removed, 2);
	ck_assert(!is_there("a") && is_there("b") && !is_there("c"));
}
END_TEST

START_TEST(a_walk_goes_on_over_slices)
{
	char key[32];
	for (unsigned i = 0; i < 1200; i++) {
		snprintf(key, sizeof(key), "%s/%04u", i % 2 == 0 ? "old" : "new", i);
		put(key, "x");
	}
	set_rule((struct lifecycle_rule){
		.enabled = true, .has_prefix = true, .prefix = TEXT("old/"), .expire_days = 1});
	pass_days(1);
	ck_assert_uint_eq(walk(), 600);
	ck_assert_int_eq(versions(), 600);
	ck_assert(is_there("new/1199") && !is_there("old/1198"));
}
END_TEST

START_TEST(tags_and_sizes_choose)
{
	uint8_t blob[] = {1, 0, 'k', 1, 0, 'v'};
	struct error err = {0};
	struct object_change_params change = {
		.object = {.bucket = fixture_bucket("bkt"), .key = span_text("tagged")},
		.sets_tags = true,
		.tags = span_of(blob, sizeof(blob))};
	static const struct tag tag = {TEXT("k"), TEXT("v")};
	put("tagged", "x");
	put("plain", "x");
	put("large", "0123456789");
	ck_assert_int_eq(fixture_change(fixture.store, &change, &err), 0);
	const struct lifecycle_rule rules[] = {
		{.enabled = true, .tags = &tag, .tag_count = 1, .expire_days = 1},
		{.enabled = true, .has_size_over = true, .size_over = 9, .expire_days = 1},
	};
	set_rules(rules, 2);
	pass_days(1);
	ck_assert_uint_eq(walk(), 2);
	ck_assert(is_there("plain") && !is_there("tagged") && !is_there("large"));
}
END_TEST

START_TEST(a_versioned_object_gets_a_marker)
{
	set_versioning(BUCKET_VERSIONED);
	put("k", "1");
	set_rule((struct lifecycle_rule){.enabled = true, .expire_days = 1});
	pass_days(1);
	ck_assert_uint_eq(walk(), 1);
	ck_assert(!is_there("k"));
	ck_assert_int_eq(versions(), 2);
	ck_assert_uint_eq(walk(), 0); /* a marker above something stays, and is not put twice */
	pass_days(5);
	ck_assert_uint_eq(walk(), 0);
	/* Once the older version is gone too, the marker has served. */
	set_rule((struct lifecycle_rule){.enabled = true, .noncurrent_days = 1});
	ck_assert_uint_eq(walk(), 1);
	ck_assert_int_eq(versions(), 1);
	set_rule((struct lifecycle_rule){.enabled = true, .expires_markers = true});
	ck_assert_uint_eq(walk(), 1);
	ck_assert_int_eq(versions(), 0);
}
END_TEST

START_TEST(a_suspended_bucket_loses_the_null_version)
{
	set_versioning(BUCKET_VERSIONED);
	put("k", "1");
	set_versioning(BUCKET_SUSPENDED);
	put("k", "2");
	set_rule((struct lifecycle_rule){.enabled = true, .expire_days = 1});
	pass_days(1);
	ck_assert_uint_eq(walk(), 1);
	ck_assert(!is_there("k"));
	ck_assert_int_eq(versions(), 2); /* the first version and the null marker */
}
END_TEST

START_TEST(older_versions_go_and_the_newest_of_them_stay)
{
	char text[16];
	set_versioning(BUCKET_VERSIONED);
	for (unsigned i = 0; i < 1100; i++) {
		snprintf(text, sizeof(text), "%u", i);
		put("many", text);
	}
	put("one", "1");
	put("one", "2");
	set_rule((struct lifecycle_rule){
		.enabled = true, .noncurrent_days = 1, .noncurrent_newer = 3});
	ck_assert_uint_eq(walk(), 0);
	pass_days(1);
	ck_assert_uint_eq(walk(), 1096);
	ck_assert_int_eq(versions(), 4 + 2);
	ck_assert_uint_eq(walk(), 0);
	ck_assert(fixture_holds(&fixture, "bkt", "many", span_text("1099")));
	set_rule((struct lifecycle_rule){.enabled = true, .noncurrent_days = 1});
	ck_assert_uint_eq(walk(), 4);
	ck_assert_int_eq(versions(), 2);
}
END_TEST

START_TEST(age_counts_from_when_it_ceased_to_be_current)
{
	set_versioning(BUCKET_VERSIONED);
	put("k", "1");
	set_rule((struct lifecycle_rule){.enabled = true, .noncurrent_days = 2});
	pass_days(10);
	put("k", "2");
	pass_days(1);
	ck_assert_uint_eq(walk(), 0);
	pass_days(1);
	ck_assert_uint_eq(walk(), 1);
}
END_TEST

START_TEST(uploads_are_aborted)
{
	struct upload_create_params params = {.bucket = fixture_bucket("bkt"),
		.key = span_text("logs/k"),
		.initiator = span_text("main")};
	struct upload_ref ref;
	struct error err = {0};
	ck_assert_int_eq(fixture_upload_create(fixture.store, &params, &ref, &err), 0);
	ck_assert_int_eq(
		fixture_upload_put(fixture.store, &ref, 1, span_text("part"), NULL, NULL, &err), 0);
	set_rule((struct lifecycle_rule){
		.enabled = true, .has_prefix = true, .prefix = TEXT("logs/"), .abort_days = 1});
	ck_assert_uint_eq(walk(), 0);
	pass_days(1);
	params.key = span_text("logs/later");
	ck_assert_int_eq(fixture_upload_create(fixture.store, &params, &ref, &err), 0);
	ck_assert_uint_eq(walk(), 1);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT count(*) FROM uploads"), 1);
	pass_days(1);
	ck_assert_uint_eq(walk(), 1);
}
END_TEST

/* Invariant 6. */
START_TEST(a_published_version_stays_for_its_step)
{
	struct error err = {0};
	put("k", "x");
	ck_assert_int_eq(
		fixture_run(fixture.store,
			"INSERT INTO step_objects (step, form, name, version) SELECT 1, 0, key, sequence FROM versions",
			&err),
		0);
	set_rule((struct lifecycle_rule){.enabled = true, .expire_days = 1});
	pass_days(1);
	ck_assert_uint_eq(walk(), 1);
	ck_assert(!is_there("k"));
	ck_assert_int_eq(
		fixture_count(fixture.store, "SELECT count(*) FROM versions WHERE state = 0"), 1);
}
END_TEST

START_TEST(disabled_and_removed_rules_do_nothing)
{
	put("k", "x");
	set_rule((struct lifecycle_rule){.enabled = false, .expire_days = 1});
	pass_days(3);
	ck_assert_uint_eq(walk(), 0);
	set_rule((struct lifecycle_rule){.enabled = true, .expire_days = 1});
	set_rules(NULL, 0);
	ck_assert_uint_eq(walk(), 0);
	ck_assert(is_there("k"));
}
END_TEST

static bool cached(int64_t *out_due_ms)
{
	const struct lifecycle_subject subject = {
		.key = span_text("k"), .since_ms = fixture.clock.now_ms};
	struct lifecycle_expiry expiry = {0};
	const bool expires = lifecycle_cache_expires(store_parts(fixture.store)->lifecycle_cache,
		span_text("bkt"), &subject, (struct span){NULL, 0}, fixture.arena, &expiry);
	ck_assert(!expires || span_equal_text(expiry.rule_id, "rule"));
	*out_due_ms = expiry.due_ms;
	return expires;
}

START_TEST(the_cache_follows_the_bucket)
{
	const struct lifecycle_rule rule = {.id = TEXT("rule"), .enabled = true, .expire_days = 1};
	struct error err = {0};
	int64_t due_ms = 0;
	ck_assert(!cached(&due_ms));
	set_rule(rule);
	ck_assert(cached(&due_ms));
	ck_assert_int_gt(due_ms, fixture.clock.now_ms);
	store_fixture_reopen(&fixture);
	ck_assert(cached(&due_ms));
	set_rules(NULL, 0);
	ck_assert(!cached(&due_ms));
	set_rule(rule);
	ck_assert_int_eq(fixture_delete_bucket(fixture.store, "bkt", &err), 0);
	ck_assert(!cached(&due_ms));
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "bkt", "main", &err), 0);
	ck_assert(!cached(&due_ms));
}
END_TEST

/* Damages the catalog at the first COMMIT that is noted after the test asks for it. */
static struct damaging {
	struct file_ops ops;
	int64_t page; /* 0: not now */
} damaging;

static bool is_acknowledged(int fd)
{
	static const char NAME[] = "/acknowledged";
	char link[64];
	char path[4096];
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	const ssize_t len = readlink(link, path, sizeof path);
	const size_t suffix = sizeof NAME - 1;
	return len >= (ssize_t)suffix && memcmp(path + len - suffix, NAME, suffix) == 0;
}

static void damage_catalog(void)
{
	enum { PAGE_BYTES = 4096 };
	static const uint8_t zeros[PAGE_BYTES];
	char *const path = store_fixture_path(&fixture, "catalog.db");
	const int fd = open(path, O_WRONLY);
	const off_t at = (damaging.page - 1) * PAGE_BYTES;
	ck_assert_int_eq(pwrite(fd, zeros, sizeof zeros, at), sizeof zeros);
	close(fd);
	free(path);
	store_health_set_proof(
		store_health(fixture.store), STORE_DAMAGED, "a page of 'step_views'");
}

static ssize_t damaging_pwrite(
	const struct file_ops *ops, int fd, const void *data, size_t len, off_t offset)
{
	(void)ops;
	if (damaging.page != 0 && is_acknowledged(fd)) {
		damage_catalog();
		damaging.page = 0;
	}
	return file_system()->pwrite(file_system(), fd, data, len, offset);
}

/* Two groups are due in one slice. */
START_TEST(nothing_goes_from_the_moment_on_in_which_damage_is_found)
{
	enum { OBJECTS = LIFECYCLE_CHANGE_ITEMS + 20 };
	static const char SQL_PAGE[] =
		"SELECT rootpage FROM sqlite_schema WHERE name = 'step_views'";
	char key[16];
	for (unsigned i = 0; i < OBJECTS; i++) {
		snprintf(key, sizeof key, "k%u", i);
		put(key, "x");
	}
	set_rule((struct lifecycle_rule){.enabled = true, .expire_days = 1});
	damaging = (struct damaging){.ops = *file_system()};
	damaging.ops.pwrite = damaging_pwrite;
	fixture.files = &damaging.ops;
	store_fixture_reopen(&fixture);
	pass_days(2);
	damaging.page = fixture_count(fixture.store, SQL_PAGE);
	ck_assert_uint_eq(walk(), LIFECYCLE_CHANGE_ITEMS);
	ck_assert_int_eq(versions(), OBJECTS - LIFECYCLE_CHANGE_ITEMS);
	ck_assert_uint_eq(walk(), 0);
}
END_TEST

Suite *test_lifecycle_worker_suite(void);
Suite *test_lifecycle_worker_suite(void)
{
	Suite *const suite = suite_create("lifecycle_worker");
	TCase *const walks = tcase_create("walks");
	tcase_set_timeout(walks, 120);
	tcase_add_checked_fixture(walks, setup, teardown);
	tcase_add_test(walks, objects_expire);
	tcase_add_test(walks, nothing_goes_from_the_moment_on_in_which_damage_is_found);
	tcase_add_loop_test(walks, a_damaged_row_keeps_no_other_from_expiring, 0, 2);
	tcase_add_test(walks, a_damaged_older_row_keeps_no_other_key_from_expiring);
	tcase_add_test(walks, a_walk_goes_on_over_slices);
	tcase_add_test(walks, tags_and_sizes_choose);
	tcase_add_test(walks, a_versioned_object_gets_a_marker);
	tcase_add_test(walks, a_suspended_bucket_loses_the_null_version);
	tcase_add_test(walks, older_versions_go_and_the_newest_of_them_stay);
	tcase_add_test(walks, age_counts_from_when_it_ceased_to_be_current);
	tcase_add_test(walks, uploads_are_aborted);
	tcase_add_test(walks, a_published_version_stays_for_its_step);
	tcase_add_test(walks, disabled_and_removed_rules_do_nothing);
	tcase_add_test(walks, the_cache_follows_the_bucket);
	suite_add_tcase(suite, walks);
	return suite;
}
