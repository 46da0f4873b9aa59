/* A bucket is deleted after its caller was authorised and before the operation, and by then another
 * account has a bucket of the same name. That bucket is left alone. */
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

#include "storage/files/batch.h"
#include "storage/files/tree.h"
#include "storage/objects/object_list.h"
#include "storage/versions/version_list.h"
#include "tests/unit/storage/run_fixture.h"
#include "tests/unit/storage/upload_fixture.h"

#define OF_BUCKET " JOIN buckets b ON b.id = t.bucket WHERE b.name = CAST('bucket' AS BLOB)"

static struct store_fixture fixture;
static struct bucket_ref stale; /* of the bucket that was authorised */
static struct object source;    /* in a bucket that stays */
static int64_t held;            /* versions of the bucket that came in its place */

static void set_up(void)
{
	struct error err = {0};
	struct bucket bucket;
	run_fixture_open(&fixture);
	ck_assert_int_eq(fixture_put(fixture.store, "bucket", "k", span_text("ours"), &err), 0);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "from", "main", &err), 0);
	ck_assert_int_eq(fixture_put(fixture.store, "from", "k", span_text("ours"), &err), 0);
	ck_assert_int_eq(fixture_find(&fixture, "from", "k", &source, &err), 0);
	ck_assert_int_eq(
		bucket_find(fixture.store, fixture_bucket("bucket"), fixture.arena, &bucket, &err),
		0);
	stale = bucket_ref_of(&bucket);
}

static void tear_down(void)
{
	store_fixture_close(&fixture);
}

static int64_t versions(void)
{
	return fixture_count(fixture.store, "SELECT count(*) FROM versions t" OF_BUCKET);
}

static void swap(void)
{
	struct error err = {0};
	const struct run_ref run = run_named(span_text("bucket"), span_text("run"));
	ck_assert_int_eq(fixture_call(run_delete_call(fixture.store, &run), &err), 0);
	ck_assert_int_eq(fixture_drop_bucket(fixture.store, "bucket", &err), 0);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "bucket", "other", &err), 0);
	ck_assert_int_eq(fixture_open_run(fixture.store, "bucket", "run", NULL, &err), 0);
	ck_assert_int_eq(fixture_put(fixture.store, "bucket", "k", span_text("theirs"), &err), 0);
	held = versions();
}

static void expect_left_alone(int result, const struct error *err)
{
	ck_assert_int_eq(result, -1);
	ck_assert_msg(err->kind == ERROR_NO_BUCKET, "%s", err->text);
	ck_assert_int_eq(versions(), held);
	ck_assert(fixture_holds(&fixture, "bucket", "k", span_text("theirs")));
	ck_assert_int_eq(
		fixture_count(fixture.store, "SELECT count(*) FROM uploads t" OF_BUCKET), 0);
	ck_assert_uint_eq(run_fixture_run(&fixture).steps, 0);
}

START_TEST(a_put_has_no_bucket)
{
	struct error err = {0};
	struct object_put_params params = {.bucket = stale, .key = span_text("k")};
	swap();
	expect_left_alone(
		fixture_put_with(fixture.store, &params, span_text("mine"), NULL, &err), &err);
}
END_TEST

static void has_room(void *owner)
{
	(void)owner;
}

/* A caller that gives only the name keeps to the bucket that it found. */
START_TEST(a_put_under_way_has_no_bucket)
{
	struct error err = {0};
	const struct object_put_params params = {
		.bucket = fixture_bucket("bucket"), .key = span_text("k"), .room = has_room};
	struct object_put *const put = object_put_open(fixture.store, &params, &err);
	ck_assert_msg(put != NULL, "%s", err.text);
	ck_assert_int_eq(object_put_write(put, span_text("mine"), &err), SINK_TAKEN);
	swap();
	expect_left_alone(fixture_call(object_put_call(put), &err), &err);
}
END_TEST

START_TEST(a_copy_has_no_bucket)
{
	struct error err = {0};
	struct object made;
	struct object_copy_params params = {
		.source = &source, .bucket = stale, .key = span_text("k")};
	swap();
	expect_left_alone(fixture_copy(fixture.store, &params, &made, &err), &err);
}
END_TEST

START_TEST(a_copy_under_way_has_no_bucket)
{
	struct error err = {0};
	const struct object_copy_params params = {
		.source = &source, .bucket = fixture_bucket("bucket"), .key = span_text("k")};
	struct call *const copy = object_copy_call(fixture.store, &params, &err);
	ck_assert_msg(copy != NULL, "%s", err.text);
	swap();
	expect_left_alone(fixture_call(copy, &err), &err);
}
END_TEST

/* The source of a copy, and the object that a reader requests. */
START_TEST(an_object_is_not_found_in_it)
{
	struct error err = {0};
	struct object object;
	const struct object_ref ref = {.bucket = stale, .key = span_text("k")};
	swap();
	expect_left_alone(object_find(fixture.store, &ref, fixture.arena, &object, &err), &err);
}
END_TEST

START_TEST(a_listing_has_no_bucket)
{
	struct error err = {0};
	struct object_list page;
	struct version_list versions_page;
	const struct object_list_params objects = {.bucket = stale, .limit = 10};
	const struct version_list_params versions_params = {.bucket = stale, .limit = 10};
	swap();
	expect_left_alone(object_list(fixture.store, &objects, fixture.arena, &page, &err), &err);
	expect_left_alone(
		version_list(fixture.store, &versions_params, fixture.arena, &versions_page, &err),
		&err);
}
END_TEST

START_TEST(tags_and_acl_have_no_bucket)
{
	struct error err = {0};
	struct object_change_params params = {.object = {.bucket = stale, .key = span_text("k")},
		.sets_acl = true,
		.acl = ACL_PUBLIC_READ};
	swap();
	expect_left_alone(fixture_change(fixture.store, &params, &err), &err);
}
END_TEST

START_TEST(a_delete_has_no_bucket)
{
	struct error err = {0};
	struct object_delete_item item = {.key = span_text("k")};
	const struct object_delete_params params = {.bucket = stale, .items = &item, .count = 1};
	swap();
	expect_left_alone(fixture_call(object_delete_call(fixture.store, &params), &err), &err);
}
END_TEST

START_TEST(an_upload_is_not_begun)
{
	struct error err = {0};
	struct upload_ref ref;
	struct upload_create_params params = {.bucket = stale, .key = span_text("k")};
	swap();
	expect_left_alone(fixture_upload_create(fixture.store, &params, &ref, &err), &err);
}
END_TEST

START_TEST(an_upload_under_way_has_no_bucket)
{
	struct error err = {0};
	const struct upload_create_params params = {
		.bucket = fixture_bucket("bucket"), .key = span_text("k")};
	struct call *const create = upload_create_call(fixture.store, &params, &err);
	ck_assert_msg(create != NULL, "%s", err.text);
	swap();
	expect_left_alone(fixture_call(create, &err), &err);
}
END_TEST

/* An upload into the bucket that goes, with its first part. */
static struct upload_ref begin_upload(struct upload_listed_part *out_part)
{
	struct error err = {0};
	struct upload_ref ref;
	struct uploaded_part part;
	struct upload_create_params params = {.bucket = stale, .key = span_text("k")};
	ck_assert_int_eq(fixture_upload_create(fixture.store, &params, &ref, &err), 0);
	ck_assert_int_eq(
		fixture_upload_put(fixture.store, &ref, 1, span_text("mine"), NULL, &part, &err),
		0);
	*out_part = fixture_upload_listed(&part);
	return ref;
}

START_TEST(a_part_has_no_bucket)
{
	struct error err = {0};
	struct uploaded_part made;
	struct upload_listed_part part;
	const struct upload_ref ref = begin_upload(&part);
	swap();
	expect_left_alone(
		fixture_upload_put(fixture.store, &ref, 2, span_text("mine"), NULL, &made, &err),
		&err);
	expect_left_alone(
		fixture_upload_copy(fixture.store, &ref, 2, &source, 0, source.size, &made, &err),
		&err);
}
END_TEST

START_TEST(a_completion_has_no_bucket)
{
	struct error err = {0};
	struct upload_listed_part part;
	const struct upload_ref ref = begin_upload(&part);
	swap();
	expect_left_alone(fixture_upload_complete_parts(fixture.store, &ref, &part, 1, &err), &err);
}
END_TEST

START_TEST(an_abort_has_no_bucket)
{
	struct error err = {0};
	struct upload_listed_part part;
	struct upload_parts parts;
	const struct upload_ref ref = begin_upload(&part);
	swap();
	expect_left_alone(fixture_upload_abort(fixture.store, &ref, &err), &err);
	expect_left_alone(
		upload_list_parts(fixture.store, &ref, (struct upload_parts_range){.limit = 10},
			fixture.arena, &parts, &err),
		&err);
}
END_TEST

/* Everything that the step needs is there. */
START_TEST(a_step_has_no_bucket)
{
	struct error err = {0};
	const struct run_ref run = {.bucket = stale, .name = span_text("run")};
	swap();
	const struct step_message step = run_fixture_prepare(&fixture, 0, true, 0);
	held = versions();
	expect_left_alone(fixture_call(run_publish_call(fixture.store, &run, &step), &err), &err);
	run_fixture_publish_ok(&fixture, &step);
}
END_TEST

static int may_read(
	void *owner, struct bucket_ref bucket, struct span key, bool is_current, struct error *err)
{
	(void)owner, (void)bucket, (void)key, (void)is_current, (void)err;
	return 1;
}

static int run_line(struct bucket_ref bucket, struct batch_line *line, struct error *err)
{
	const struct batch_params params = {.bucket = bucket,
		.account = span_text("main"),
		.lines = line,
		.count = 1,
		.may_read = may_read};
	return fixture_call(batch_call(fixture.store, &params), err);
}

START_TEST(a_batch_has_no_bucket)
{
	struct error err = {0};
	struct batch_line lines[] = {
		{.kind = BATCH_DELETE, .path = span_text("k")},
		{.kind = BATCH_ADD, .path = span_text("k")},
		{.kind = BATCH_COPY,
			.path = span_text("k"),
			.source = fixture_bucket("from"),
			.file = source.file_hash},
	};
	swap();
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		expect_left_alone(run_line(stale, &lines[i], &err), &err);
}
END_TEST

/* The batch's own bucket is there; nothing is read from the bucket that took the other's name. */
START_TEST(a_line_copies_nothing_out_of_it)
{
	struct error err = {0};
	struct object theirs;
	swap();
	ck_assert_int_eq(fixture_find(&fixture, "bucket", "k", &theirs, &err), 0);
	struct batch_line line = {.kind = BATCH_COPY,
		.path = span_text("copy"),
		.source = stale,
		.file = theirs.file_hash};
	ck_assert_msg(run_line(fixture_bucket("from"), &line, &err) == 0, "%s", err.text);
	ck_assert_int_eq(line.error.kind, ERROR_NOT_FOUND);
	ck_assert_int_eq(fixture_find(&fixture, "from", "copy", &theirs, &err), -1);
}
END_TEST

START_TEST(a_path_of_the_hub_has_no_bucket)
{
	struct error err = {0};
	struct tree tree;
	struct run_anchor view;
	const struct span path = span_text("k");
	const struct tree_find_params params = {.bucket = stale, .paths = &path, .count = 1};
	swap();
	expect_left_alone(tree_find(fixture.store, &params, fixture.arena, &tree, &err), &err);
	expect_left_alone(run_find_view(fixture.store, stale,
				  span_text("run/deltas/step_000000.safetensors"), &view, &err),
		&err);
}
END_TEST

Suite *test_bucket_swap_suite(void);
Suite *test_bucket_swap_suite(void)
{
	Suite *const suite = suite_create("bucket_swap");
	TCase *const swaps = tcase_create("swaps");
	tcase_add_checked_fixture(swaps, set_up, tear_down);
	tcase_add_test(swaps, a_put_has_no_bucket);
	tcase_add_test(swaps, a_put_under_way_has_no_bucket);
	tcase_add_test(swaps, a_copy_has_no_bucket);
	tcase_add_test(swaps, a_copy_under_way_has_no_bucket);
	tcase_add_test(swaps, an_object_is_not_found_in_it);
	tcase_add_test(swaps, a_listing_has_no_bucket);
	tcase_add_test(swaps, tags_and_acl_have_no_bucket);
	tcase_add_test(swaps, a_delete_has_no_bucket);
	tcase_add_test(swaps, an_upload_is_not_begun);
	tcase_add_test(swaps, an_upload_under_way_has_no_bucket);
	tcase_add_test(swaps, a_part_has_no_bucket);
	tcase_add_test(swaps, a_completion_has_no_bucket);
	tcase_add_test(swaps, an_abort_has_no_bucket);
	tcase_add_test(swaps, a_step_has_no_bucket);
	tcase_add_test(swaps, a_batch_has_no_bucket);
	tcase_add_test(swaps, a_line_copies_nothing_out_of_it);
	tcase_add_test(swaps, a_path_of_the_hub_has_no_bucket);
	suite_add_tcase(suite, swaps);
	return suite;
}
