#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "storage/objects/object_conditions.h"
#include "storage/objects/object_delete.h"
#include "storage/objects/object_put.h"
#include "storage/objects/object_read.h"
#include "tests/unit/storage/store_fixture.h"

static struct store_fixture fixture;

static void set_up(void)
{
	struct error err = {0};
	memset(&fixture, 0, sizeof(fixture));
	store_fixture_open(&fixture);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "bucket", "main", &err), 0);
}

static void tear_down(void)
{
	store_fixture_close(&fixture);
}

static void set_versioning(bool enabled)
{
	struct error err = {0};
	ck_assert_int_eq(fixture_run(fixture.store,
				 enabled ? "UPDATE buckets SET versioning = 1"
					 : "UPDATE buckets SET versioning = 2",
				 &err),
		0);
}

static struct object put(const char *key, const char *text)
{
	struct error err = {0};
	struct object object;
	struct object_put_params params = {
		.bucket = bucket_named(span_text("bucket")), .key = span_text(key)};
	ck_assert_int_eq(
		fixture_put_object(fixture.store, &params, span_text(text), &object, &err), 0);
	return object;
}

static void delete_item(struct object_delete_item *item)
{
	struct error err = {0};
	ck_assert_int_eq(fixture_delete_items(fixture.store, "bucket", item, 1, &err), 0);
}

static bool exists(const char *key)
{
	struct error err = {0};
	struct object object;
	return fixture_find(&fixture, "bucket", key, &object, &err) == 0;
}

/* Conditions on an object of 5 bytes, modified at 1700000000 seconds. */
static const struct {
	const char *if_match; /* "E" stands for the object's ETag */
	bool has_size;
	uint64_t size;
	bool has_modified;
	int64_t modified_ms;
	bool holds;
} conditions[] = {
	{"E", false, 0, false, 0, true},
	{"*", false, 0, false, 0, true},
	{"\"other\"", false, 0, false, 0, false},
	{NULL, true, 5, false, 0, true},
	{NULL, true, 4, false, 0, false},
	{NULL, true, 0, false, 0, false},
	{NULL, false, 0, true, 1700000000000, true},
	{NULL, false, 0, true, 1700000000999, true},
	{NULL, false, 0, true, 1700000001000, false},
	{NULL, false, 0, true, 1699999999000, false},
	{"E", true, 5, true, 1700000000000, true},
	{"E", true, 4, true, 1700000000000, false},
};

START_TEST(conditions_guard_the_current_version_and_a_named_one)
{
	for (int named = 0; named < 2; named++) {
		char etag[OBJECT_ETAG_BYTES + 2];
		set_versioning(true);
		const struct object object = put("k", "12345");
		snprintf(etag, sizeof(etag), "\"%s\"", object.etag);
		const char *const if_match =
			conditions[_i].if_match != NULL && conditions[_i].if_match[0] == 'E'
			? etag
			: conditions[_i].if_match;
		struct object_delete_item item = {.key = span_text("k"),
			.conditions = {.if_match = span_text(if_match),
				.has_size = conditions[_i].has_size,
				.size = conditions[_i].size,
				.has_modified = conditions[_i].has_modified,
				.modified_ms = conditions[_i].modified_ms}};
		if (named == 1) {
			put("k", "another on top");
			item.ref.kind = VERSION_REF_ID;
			memcpy(item.ref.id, object.version, VERSION_ID_BYTES);
		}
		const int64_t before =
			fixture_count(fixture.store, "SELECT COUNT(*) FROM versions");
		delete_item(&item);
		ck_assert_int_eq(
			item.error.kind, conditions[_i].holds ? ERROR_NONE : ERROR_PRECONDITION);
		const int change = !conditions[_i].holds ? 0 : named == 1 ? -1 : 1;
		ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM versions"),
			before + change);
	}
}
END_TEST

START_TEST(deleting_nothing_succeeds_whatever_the_conditions)
{
	struct object_delete_item item = {
		.key = span_text("absent"), .conditions.if_match = span_text("\"x\"")};
	delete_item(&item);
	ck_assert_int_eq(item.error.kind, ERROR_NONE);
	ck_assert(!item.is_marker && !item.has_version);
	set_versioning(true);
	delete_item(&item);
	ck_assert_int_eq(item.error.kind, ERROR_NONE);
	/* a condition without an object makes no marker */
	ck_assert(!item.is_marker && !item.has_version);
	item.conditions.if_match = span_text("");
	delete_item(&item);
	ck_assert(item.is_marker && item.has_version);
	ck_assert(!exists("absent"));
}
END_TEST

static const struct object_conditions any_condition[] = {{.if_match = {(const uint8_t *)"x", 1}},
	{.if_none_match = {(const uint8_t *)"x", 1}}, {.has_size = true}, {.has_modified = true}};

START_TEST(a_condition_on_nothing_makes_no_marker)
{
	struct object_delete_item item = {
		.key = span_text("absent"), .conditions = any_condition[_i]};
	set_versioning(true);
	delete_item(&item);
	ck_assert_int_eq(item.error.kind, ERROR_NONE);
	ck_assert(!item.is_marker && !item.has_version);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM versions"), 0);
}
END_TEST

/* Items where a run keeps its anchors, with an object that was there before the run. */
static void make_guarded(struct object_delete_item items[2])
{
	struct error err = {0};
	put("run/anchors/mine", "1");
	put("k", "2");
	ck_assert_msg(
		fixture_open_run(fixture.store, "bucket", "run", NULL, &err) == 0, "%s", err.text);
	items[0] = (struct object_delete_item){.key = span_text("run/anchors/mine")};
	items[1] = (struct object_delete_item){.key = span_text("k")};
}

START_TEST(what_is_the_servers_stays_and_the_rest_goes)
{
	struct error err = {0};
	struct object_delete_item items[2];
	make_guarded(items);
	ck_assert_msg(
		fixture_delete_items(fixture.store, "bucket", items, 2, &err) == 0, "%s", err.text);
	ck_assert_int_eq(items[0].error.kind, ERROR_DENIED);
	ck_assert_int_eq(items[1].error.kind, ERROR_NONE);
	ck_assert(exists("run/anchors/mine") && !exists("k"));
}
END_TEST

/* It is unknown whose key it is, so nothing is deleted. */
START_TEST(a_damaged_run_fails_the_delete)
{
	struct error err = {0};
	struct object_delete_item items[2];
	make_guarded(items);
	ck_assert_int_eq(fixture_run(fixture.store, "UPDATE runs SET settings = x'ff'", &err), 0);
	(void)fixture_delete_items(fixture.store, "bucket", items, 2, &err);
	ck_assert(items[0].error.kind != ERROR_NONE && items[0].error.kind != ERROR_DENIED);
	ck_assert(items[1].error.kind != ERROR_NONE);
	ck_assert(exists("run/anchors/mine") && exists("k"));
}
END_TEST

START_TEST(conditions_on_a_delete_marker)
{
	set_versioning(true);
	put("k", "12345");
	struct object_delete_item item = {.key = span_text("k")};
	delete_item(&item);
	/* the ETag of the object under the marker */
	item.conditions.if_match = span_text("\"827ccb0eea8a706c4c34a16891f84e7b\"");
	delete_item(&item);
	ck_assert_int_eq(item.error.kind, ERROR_PRECONDITION);
	item.conditions.if_match = span_text("*");
	delete_item(&item);
	ck_assert_int_eq(item.error.kind, ERROR_NONE);
}
END_TEST

START_TEST(markers_and_null_versions_come_and_go)
{
	put("k", "first");
	struct object_delete_item item = {.key = span_text("k")};
	set_versioning(true);
	put("k", "second");
	delete_item(&item);
	ck_assert(item.is_marker && item.has_version && strlen(item.version) == 32);
	ck_assert(!exists("k"));
	struct object_delete_item marker = {.key = span_text("k")};
	ck_assert(version_ref_parse(span_text(item.version), &marker.ref));
	delete_item(&marker);
	ck_assert(marker.is_marker && marker.has_version);
	ck_assert_str_eq(marker.version, item.version);
	ck_assert(fixture_holds(&fixture, "bucket", "k", span_text("second")));
	set_versioning(false);
	delete_item(&item); /* the null version "first" gives way to a null marker */
	ck_assert(item.is_marker && item.has_version);
	ck_assert_str_eq(item.version, "null");
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM versions"), 2);
	struct object_delete_item null = {.key = span_text("k"), .ref.kind = VERSION_REF_NULL};
	delete_item(&null);
	ck_assert(null.is_marker && null.has_version);
	ck_assert(fixture_holds(&fixture, "bucket", "k", span_text("second")));
	delete_item(&null); /* deleting it again succeeds */
	ck_assert_int_eq(null.error.kind, ERROR_NONE);
	ck_assert(!null.is_marker);
}
END_TEST

/* The list takes ten changes; each item has its own outcome. */
START_TEST(a_version_says_whether_its_bucket_keeps_versions)
{
	struct error err = {0};
	struct object object;
	put("k", "text");
	for (int versioning = 0; versioning < 3; versioning++) {
		if (versioning > 0)
			set_versioning(versioning == 1);
		ck_assert_int_eq(fixture_find(&fixture, "bucket", "k", &object, &err), 0);
		ck_assert_int_eq(object.in_versioned_bucket, versioning > 0);
	}
}
END_TEST

START_TEST(a_thousand_items)
{
	static struct object_delete_item items[OBJECT_DELETE_MAX];
	static char keys[OBJECT_DELETE_MAX][16];
	struct error err = {0};
	memset(items, 0, sizeof(items));
	for (int i = 0; i < OBJECT_DELETE_MAX; i++) {
		snprintf(keys[i], sizeof(keys[i]), "k%03d", i);
		items[i].key = span_text(keys[i]);
		if (i % 50 == 0)
			put(keys[i], "12345");
		if (i % 100 == 0)
			items[i].conditions =
				(struct object_conditions){.has_size = true, .size = 6};
	}
	ck_assert_int_eq(
		fixture_delete_items(fixture.store, "bucket", items, OBJECT_DELETE_MAX, &err), 0);
	for (int i = 0; i < OBJECT_DELETE_MAX; i++) {
		ck_assert_int_eq(
			items[i].error.kind, i % 100 == 0 ? ERROR_PRECONDITION : ERROR_NONE);
		ck_assert_int_eq(exists(keys[i]), i % 100 == 0);
	}
	ck_assert_int_eq(
		fixture_delete_items(fixture.store, "absent", items, OBJECT_DELETE_MAX, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_BUCKET);
	ck_assert_int_eq(items[999].error.kind, ERROR_NO_BUCKET);
}
END_TEST

START_TEST(one_key_twice_in_a_list)
{
	struct error err = {0};
	struct object_delete_item items[2] = {{.key = span_text("k")}, {.key = span_text("k")}};
	put("k", "x");
	ck_assert_int_eq(fixture_delete_items(fixture.store, "bucket", items, 2, &err), 0);
	ck_assert(items[0].error.kind == ERROR_NONE && items[1].error.kind == ERROR_NONE &&
		!exists("k"));
}
END_TEST

Suite *test_object_delete_suite(void);
Suite *test_object_delete_suite(void)
{
	Suite *const suite = suite_create("object_delete");
	TCase *const tests = tcase_create("object_delete");
	tcase_set_timeout(tests, 60);
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_loop_test(tests, conditions_guard_the_current_version_and_a_named_one, 0,
		sizeof(conditions) / sizeof(conditions[0]));
	tcase_add_test(tests, deleting_nothing_succeeds_whatever_the_conditions);
	tcase_add_loop_test(tests, a_condition_on_nothing_makes_no_marker, 0, 4);
	tcase_add_test(tests, what_is_the_servers_stays_and_the_rest_goes);
	tcase_add_test(tests, a_damaged_run_fails_the_delete);
	tcase_add_test(tests, conditions_on_a_delete_marker);
	tcase_add_test(tests, markers_and_null_versions_come_and_go);
	tcase_add_test(tests, a_version_says_whether_its_bucket_keeps_versions);
	tcase_add_test(tests, a_thousand_items);
	tcase_add_test(tests, one_key_twice_in_a_list);
	suite_add_tcase(suite, tests);
	return suite;
}
