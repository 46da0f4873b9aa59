/* Tests tags and ACLs of versions, and which bucket and version a change belongs to. */
#include "tests/unit/unit.h"

#include <string.h>

#include "storage/objects/object_change.h"
#include "storage/objects/object_delete.h"
#include "storage/objects/object_put.h"
#include "storage/objects/object_read.h"
#include "tests/unit/storage/store_fixture.h"

static const uint8_t TAGS[] = {1, 0, 'k', 1, 0, 'v'};

static struct store_fixture fixture;
static struct error err;

static void set_up(void)
{
	err = (struct error){0};
	memset(&fixture, 0, sizeof fixture);
	store_fixture_open(&fixture);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "weights", "main", &err), 0);
}

static void tear_down(void)
{
	store_fixture_close(&fixture);
}

static struct object put(const char *text)
{
	struct object_put_params params = {
		.bucket = bucket_named(span_text("weights")), .key = span_text("k")};
	struct object object;
	ck_assert_msg(
		fixture_put_object(fixture.store, &params, span_text(text), &object, &err) == 0,
		"%s", err.text);
	return object;
}

static void set_versioning(enum bucket_versioning versioning)
{
	const struct bucket_edit edit = {.sets_versioning = true, .versioning = versioning};
	ck_assert_int_eq(fixture_edit_bucket(fixture.store, "weights", &edit, &err), 0);
}

static struct object_change_params change_of(struct version_ref ref)
{
	return (struct object_change_params){
		.object = {bucket_named(span_text("weights")), span_text("k"), ref, 0}};
}

static struct object_change_params tags_of(struct version_ref ref)
{
	struct object_change_params params = change_of(ref);
	params.sets_tags = true;
	params.tags = span_of(TAGS, sizeof TAGS);
	return params;
}

/* Only numbers and flags of the result outlive the call; its texts do not. */
static int change(struct object_change_params params, struct object *out)
{
	struct call *const call = object_change_call(fixture.store, &params);
	int result = call_run(call, &err);
	if (result == 0)
		result = object_change_result(call, out, &err);
	call_free(call);
	return result;
}

static void expect_refused(struct version_ref ref, enum error_kind kind)
{
	struct object object;
	ck_assert_int_eq(change(tags_of(ref), &object), -1);
	ck_assert_int_eq(err.kind, kind);
}

static struct object find(void)
{
	struct object object;
	ck_assert_msg(fixture_find(&fixture, "weights", "k", &object, &err) == 0, "%s", err.text);
	return object;
}

START_TEST(what_is_missing_is_told_as_it_was_asked_for)
{
	expect_refused((struct version_ref){.kind = VERSION_REF_CURRENT}, ERROR_NO_KEY);
	expect_refused((struct version_ref){.kind = VERSION_REF_NULL}, ERROR_NO_VERSION);
	expect_refused((struct version_ref){.kind = VERSION_REF_ID, .id = {1}}, ERROR_NO_VERSION);
}
END_TEST

START_TEST(a_marker_has_neither_tags_nor_access)
{
	set_versioning(BUCKET_VERSIONED);
	put("bytes");
	ck_assert_int_eq(fixture_delete(fixture.store, "weights", "k", NULL, &err), 0);
	expect_refused((struct version_ref){.kind = VERSION_REF_CURRENT}, ERROR_METHOD);
}
END_TEST

START_TEST(tags_and_access_are_set_apart)
{
	struct object object;
	struct object_change_params access =
		change_of((struct version_ref){.kind = VERSION_REF_CURRENT});
	access.sets_acl = true;
	access.acl = ACL_PUBLIC_READ;
	put("bytes");
	ck_assert_int_eq(change(tags_of(access.object.version), &object), 0);
	ck_assert(find().acl == ACL_PRIVATE && span_equal(find().tags, span_of(TAGS, sizeof TAGS)));
	ck_assert_int_eq(change(access, &object), 0);
	ck_assert(find().acl == ACL_PUBLIC_READ &&
		span_equal(find().tags, span_of(TAGS, sizeof TAGS)));
	struct object_change_params none = change_of(access.object.version);
	none.sets_tags = true;
	ck_assert_int_eq(change(none, &object), 0);
	ck_assert(find().acl == ACL_PUBLIC_READ && find().tags.len == 0);
}
END_TEST

START_TEST(an_older_version_is_changed_alone)
{
	struct object changed;
	set_versioning(BUCKET_VERSIONED);
	const struct object first = put("first");
	put("second");
	struct version_ref ref = {.kind = VERSION_REF_ID};
	memcpy(ref.id, first.version, VERSION_ID_BYTES);
	ck_assert_int_eq(change(tags_of(ref), &changed), 0);
	ck_assert(changed.in_versioned_bucket && changed.has_id &&
		changed.sequence == first.sequence);
	ck_assert_uint_eq(find().tags.len, 0);
	ck_assert_int_eq(fixture_count(fixture.store,
				 "SELECT COUNT(*) FROM versions WHERE tags IS NOT NULL"),
		1);
}
END_TEST

static void expect_no_version(struct version_ref ref)
{
	const struct object_ref object_ref = {.bucket = bucket_named(span_text("weights")),
		.key = span_text("k"),
		.version = ref};
	struct object object;
	ck_assert_int_eq(object_find(fixture.store, &object_ref, fixture.arena, &object, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_VERSION);
}

START_TEST(a_version_is_found_only_by_what_names_it)
{
	struct version_ref ref = {.kind = VERSION_REF_ID};
	expect_no_version((struct version_ref){.kind = VERSION_REF_NULL});
	const struct object null = put("null");
	ck_assert(!find().in_versioned_bucket);
	memcpy(ref.id, null.version, VERSION_ID_BYTES);
	expect_no_version(ref);
	set_versioning(BUCKET_VERSIONED);
	const struct object hidden = put("hidden");
	ck_assert_int_eq(
		fixture_run(fixture.store, "UPDATE versions SET state = 0 WHERE has_id = 1", &err),
		0);
	memcpy(ref.id, hidden.version, VERSION_ID_BYTES);
	expect_no_version(ref);
	put("shown");
	ck_assert(find().in_versioned_bucket && find().has_id);
}
END_TEST

START_TEST(a_caller_that_was_let_into_one_version_finds_no_other)
{
	struct object object;
	struct object_ref ref = {.bucket = bucket_named(span_text("weights")),
		.key = span_text("k"),
		.judged_version = put("first").sequence};
	ck_assert_int_eq(object_find(fixture.store, &ref, fixture.arena, &object, &err), 0);
	put("second");
	ck_assert_int_eq(object_find(fixture.store, &ref, fixture.arena, &object, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_KEY);
	ck_assert(object.size == 0 && object.sequence == 0);
}
END_TEST

/* Deletes the bucket and makes another one with its name. Returns a reference to the first one. */
static struct bucket_ref remake_bucket(void)
{
	struct bucket bucket;
	ck_assert_int_eq(bucket_find(fixture.store, bucket_named(span_text("weights")),
				 fixture.arena, &bucket, &err),
		0);
	ck_assert_int_eq(fixture_delete_bucket(fixture.store, "weights", &err), 0);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "weights", "other", &err), 0);
	put("bytes");
	return (struct bucket_ref){span_text("weights"), bucket.id};
}

START_TEST(a_change_is_of_one_bucket_not_of_its_name)
{
	struct object object;
	struct object_change_params params =
		tags_of((struct version_ref){.kind = VERSION_REF_CURRENT});
	params.object.bucket = remake_bucket();
	ck_assert_int_eq(change(params, &object), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_BUCKET);
	ck_assert_uint_eq(find().tags.len, 0);
}
END_TEST

START_TEST(a_delete_is_of_one_bucket_not_of_its_name)
{
	struct object_delete_item item = {.key = span_text("k")};
	const struct object_delete_params params = {
		.bucket = remake_bucket(), .items = &item, .count = 1};
	ck_assert_int_eq(fixture_call(object_delete_call(fixture.store, &params), &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_BUCKET);
	ck_assert_int_eq(item.error.kind, ERROR_NO_BUCKET);
	find();
}
END_TEST

Suite *test_object_change_suite(void);
Suite *test_object_change_suite(void)
{
	Suite *const suite = suite_create("object_change");
	TCase *const tests = tcase_create("object_change");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, what_is_missing_is_told_as_it_was_asked_for);
	tcase_add_test(tests, a_marker_has_neither_tags_nor_access);
	tcase_add_test(tests, tags_and_access_are_set_apart);
	tcase_add_test(tests, an_older_version_is_changed_alone);
	tcase_add_test(tests, a_version_is_found_only_by_what_names_it);
	tcase_add_test(tests, a_caller_that_was_let_into_one_version_finds_no_other);
	tcase_add_test(tests, a_change_is_of_one_bucket_not_of_its_name);
	tcase_add_test(tests, a_delete_is_of_one_bucket_not_of_its_name);
	suite_add_tcase(suite, tests);
	return suite;
}
