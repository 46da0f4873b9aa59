#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

#include "storage/buckets/tag_set.h"
#include "storage/core/committer.h"
#include "storage/files/batch.h"
#include "storage/files/file_hash.h"
#include "storage/files/file_time.h"
#include "storage/files/xet_file.h"
#include "storage/objects/object_put.h"
#include "storage/objects/object_read.h"
#include "storage/versions/part.h"
#include "storage/versions/version.h"
#include "tests/unit/storage/store_fixture.h"
#include "tests/unit/storage/upload_fixture.h"

enum { LARGE = 300000 };

static struct store_fixture fixture;
static uint8_t *noise;
static const char *unreadable; /* a key that may_read refuses */

static void set_up(void)
{
	struct error err = {0};
	memset(&fixture, 0, sizeof(fixture));
	store_fixture_open(&fixture);
	noise = fixture_noise(LARGE, 5);
	unreadable = NULL;
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "box", "main", &err), 0);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "from", "main", &err), 0);
}

static void tear_down(void)
{
	store_fixture_close(&fixture);
	free(noise);
}

static struct object put_headers(const char *bucket, const char *key, struct span bytes,
	const struct object_header *headers, size_t count)
{
	struct error err = {0};
	struct object object;
	struct object_put_params params = {.bucket = fixture_bucket(bucket),
		.key = span_text(key),
		.facts = {.headers = headers, .header_count = count}};
	ck_assert_msg(fixture_put_object(fixture.store, &params, bytes, &object, &err) == 0, "%s",
		err.text);
	return object;
}

static struct object put(const char *bucket, const char *key, struct span bytes)
{
	return put_headers(bucket, key, bytes, NULL, 0);
}

static int may_read(
	void *owner, struct bucket_ref bucket, struct span key, bool is_current, struct error *err)
{
	(void)err;
	(void)owner;
	(void)bucket;
	(void)is_current;
	return unreadable == NULL || !span_equal_text(key, unreadable);
}

static int run_in(int64_t bucket_id, struct batch_line *lines, size_t count, struct error *err)
{
	const struct batch_params params = {.bucket = {span_text("box"), bucket_id},
		.account = span_text("main"),
		.lines = lines,
		.count = count,
		.may_read = may_read};
	return fixture_call(batch_call(fixture.store, &params), err);
}

static void run(struct batch_line *lines, size_t count)
{
	struct error err = {0};
	ck_assert_msg(run_in(0, lines, count, &err) == 0, "%s", err.text);
}

static struct batch_line add(const char *path, const struct object *object)
{
	return (struct batch_line){
		.kind = BATCH_ADD, .path = span_text(path), .file = object->file_hash};
}

static struct batch_line copy(const char *path, const struct object *object)
{
	return (struct batch_line){.kind = BATCH_COPY,
		.path = span_text(path),
		.file = object->file_hash,
		.source = fixture_bucket("from")};
}

static struct batch_line delete (const char *path)
{
	return (struct batch_line){.kind = BATCH_DELETE, .path = span_text(path)};
}

static struct batch_line judge(const char *path)
{
	return (struct batch_line){.kind = BATCH_JUDGE_DELETE, .path = span_text(path)};
}

static struct object find(const char *key)
{
	struct error err = {0};
	struct object object;
	ck_assert_msg(fixture_find(&fixture, "box", key, &object, &err) == 0, "%s", err.text);
	return object;
}

static bool exists(const char *key)
{
	struct error err = {0};
	struct object object;
	return fixture_find(&fixture, "box", key, &object, &err) == 0;
}

static struct span header(const struct object *object, const char *name)
{
	for (size_t i = 0; i < object->header_count; i++)
		if (span_equal_text(object->headers[i].name, name))
			return object->headers[i].value;
	return (struct span){NULL, 0};
}

static const size_t sizes[] = {0, 700, LARGE};

START_TEST(files_are_copied_without_their_bytes_and_outlive_their_source)
{
	struct error err = {0};
	const struct span bytes = span_of(noise, sizes[_i]);
	const struct object source = put("from", "k", bytes);
	struct batch_line lines[] = {copy("c", &source), copy("d/e", &source)};
	const int64_t packs =
		fixture_count(fixture.store, "SELECT COALESCE(SUM(length), 0) FROM packs");
	run(lines, 2);
	ck_assert_int_eq(lines[0].error.kind, ERROR_NONE);
	ck_assert_int_eq(lines[1].error.kind, ERROR_NONE);
	ck_assert_int_eq(
		fixture_count(fixture.store, "SELECT COALESCE(SUM(length), 0) FROM packs"), packs);
	ck_assert_int_eq(fixture_delete(fixture.store, "from", "k", NULL, &err), 0);
	fixture_sweep(fixture.store);
	ck_assert(fixture_holds(&fixture, "box", "c", bytes));
	ck_assert(fixture_holds(&fixture, "box", "d/e", bytes));
	const struct object found = find("c");
	ck_assert(found.has_file_hash && chunk_id_equal(&found.file_hash, &source.file_hash));
	ck_assert_uint_eq(found.size, bytes.len);
	ck_assert_str_eq(found.etag + 32, "-1");
	struct batch_line gone[] = {delete ("c"), delete ("d/e")};
	run(gone, 2);
	fixture_sweep(fixture.store);
	ck_assert_int_eq(
		fixture_count(fixture.store,
			"SELECT (SELECT COUNT(*) FROM part_sets) + (SELECT COUNT(*) FROM segments)"),
		0);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM inline_bytes"), 0);
}
END_TEST

START_TEST(a_file_of_the_bucket_is_added_again_even_onto_itself)
{
	const struct span bytes = span_of(noise, sizes[_i]);
	const struct object source = put("box", "k", bytes);
	struct batch_line lines[] = {add("k", &source), add("k", &source), add("other", &source)};
	run(lines, 3);
	for (size_t i = 0; i < 3; i++)
		ck_assert_msg(lines[i].error.kind == ERROR_NONE, "%s", lines[i].error.text);
	ck_assert(fixture_holds(&fixture, "box", "k", bytes));
	ck_assert(fixture_holds(&fixture, "box", "other", bytes));
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM versions"), 2);
}
END_TEST

/* The wrong lines stand between good ones; each has its own reason. */
/* Does what a shard does: registers the bytes of an object as a file of their own, by `account` for
 * the bucket. */
struct registration {
	struct change change; /* first */
	struct object object;
	int64_t bucket;
	const char *account;
};

static int add_registered(struct change *change, struct db *db, struct error *err)
{
	const struct registration *const registration = (const struct registration *)change;
	const int64_t expires_ms = fixture.clock.now_ms + XET_GRANT_MS;
	struct part_range range = {.length = registration->object.size};
	struct xet_file file = {.hash = registration->object.file_hash,
		.size = registration->object.size,
		.expires_ms = expires_ms};
	struct version version;
	ck_assert_int_eq(
		version_find_sequence(db, registration->object.sequence, NULL, &version, err), 1);
	ck_assert_int_eq(
		part_set_load(db, version.part_set, version.size, version.contents, &range, err),
		0);
	ck_assert_int_eq(part_set_add_single(db, range.segments, range.segment_count,
				 &file.part_set, &file.contents, err),
		0);
	free(range.segments);
	ck_assert_int_eq(xet_file_row_add(db, &file, err), 0);
	const struct xet_grant grant = {.file = &file.hash,
		.bucket = registration->bucket,
		.account = span_text(registration->account)};
	return xet_grant_row_put(db, &grant, expires_ms, err);
}

static void register_for(const struct object *object, const char *account)
{
	struct error err = {0};
	struct registration registration = {.change = {.apply = add_registered},
		.object = *object,
		.account = account,
		.bucket = fixture_count(
			fixture.store, "SELECT id FROM buckets WHERE name = CAST('box' AS BLOB)")};
	ck_assert_msg(
		committer_run(store_committer(fixture.store), &registration.change, &err) == 0,
		"%s", err.text);
}

START_TEST(a_registered_file_becomes_a_version_that_outlives_the_registration)
{
	struct error err = {0};
	const struct object source = put("from", "k", span_of(noise, LARGE));
	register_for(&source, "main");
	struct batch_line lines[] = {add("a", &source), add("b", &source)};
	lines[0].has_size = true;
	lines[0].size = LARGE;
	run(lines, 2);
	ck_assert_msg(lines[0].error.kind == ERROR_NONE, "%s", lines[0].error.text);
	ck_assert_int_eq(lines[1].error.kind, ERROR_NONE);
	ck_assert_int_eq(fixture_delete(fixture.store, "from", "k", NULL, &err), 0);
	fixture.clock.now_ms += 2 * (int64_t)XET_GRANT_MS;
	fixture_sweep(fixture.store);
	ck_assert(fixture_holds(&fixture, "box", "a", span_of(noise, LARGE)));
	ck_assert(fixture_holds(&fixture, "box", "b", span_of(noise, LARGE)));
}
END_TEST

START_TEST(a_file_that_another_account_has_registered_is_none)
{
	const struct object source = put("from", "k", span_of(noise, LARGE));
	register_for(&source, "other");
	struct batch_line line = add("a", &source);
	run(&line, 1);
	ck_assert_int_eq(line.error.kind, ERROR_NOT_FOUND);
	ck_assert(!exists("a"));
}
END_TEST

START_TEST(a_registration_that_is_over_opens_nothing)
{
	const struct object source = put("from", "k", span_of(noise, LARGE));
	register_for(&source, "main");
	fixture.clock.now_ms += 2 * (int64_t)XET_GRANT_MS;
	struct batch_line line = add("a", &source);
	run(&line, 1);
	ck_assert_int_eq(line.error.kind, ERROR_NOT_FOUND);
}
END_TEST

START_TEST(a_line_that_fails_leaves_the_others_alone)
{
	const struct object source = put("from", "k", span_text("hello"));
	const struct object elsewhere = put("from", "m", span_of(noise, LARGE));
	struct batch_line lines[] = {
		copy("a", &source),
		copy("b", &elsewhere),
		delete ("a"),
		copy("a", &source),
		add("unknown", &source),
		copy("c", &source),
		copy("sized", &source),
		delete ("absent"),
		copy("nowhere", &source),
		copy("passed", &source),
		copy("last", &source),
	};
	unreadable = "m";
	lines[4].file.bytes[0] ^= 1;
	lines[5].file.bytes[0] ^= 1;
	lines[6].has_size = true;
	lines[6].size = 6;
	lines[8].source = fixture_bucket("no-such-bucket");
	lines[9].is_refused = true;
	error_set(&lines[9].error, ERROR_DENIED, "not yours");
	run(lines, sizeof(lines) / sizeof(lines[0]));
	static const enum error_kind expected[] = {ERROR_NONE, ERROR_NOT_FOUND, ERROR_NONE,
		ERROR_NONE, ERROR_NOT_FOUND, ERROR_NOT_FOUND, ERROR_INVALID, ERROR_NONE,
		ERROR_NOT_FOUND, ERROR_DENIED, ERROR_NONE};
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		ck_assert_msg(
			lines[i].error.kind == expected[i], "%zu: %s", i, lines[i].error.text);
	ck_assert(exists("a") && exists("last"));
	ck_assert_int_eq(
		fixture_count(fixture.store,
			"SELECT COUNT(*) FROM versions v JOIN buckets b ON b.id = v.bucket WHERE b.name = CAST('box' AS BLOB)"),
		2);
}
END_TEST

START_TEST(lines_apply_in_their_order)
{
	const struct object one = put("from", "1", span_text("one"));
	const struct object two = put("from", "2", span_text("two"));
	struct batch_line lines[] = {copy("k", &one), copy("k", &two), copy("gone", &one),
		delete ("gone"), add("again", &two)};
	run(lines, 5);
	/* the second line has added it to the bucket */
	ck_assert_msg(lines[4].error.kind == ERROR_NONE, "%s", lines[4].error.text);
	ck_assert(fixture_holds(&fixture, "box", "k", span_text("two")));
	ck_assert(fixture_holds(&fixture, "box", "again", span_text("two")));
	ck_assert(!exists("gone"));
}
END_TEST

START_TEST(the_empty_file_needs_no_source)
{
	struct batch_line lines[] = {{.kind = BATCH_ADD, .path = span_text("a"), .has_size = true},
		{.kind = BATCH_COPY,
			.path = span_text("b"),
			.source = fixture_bucket("no-such-bucket")}};
	run(lines, 2);
	ck_assert_int_eq(lines[0].error.kind, ERROR_NONE);
	ck_assert_int_eq(lines[1].error.kind, ERROR_NONE);
	ck_assert(fixture_holds(&fixture, "box", "a", span_text("")));
	ck_assert(fixture_holds(&fixture, "box", "b", span_text("")));
	const struct object found = find("a");
	static const struct chunk_id zeros = {{0}};
	ck_assert(found.has_file_hash && chunk_id_equal(&found.file_hash, &zeros));
}
END_TEST

START_TEST(times_and_types_come_from_the_line_else_from_the_source)
{
	const struct object_header headers[] = {
		{span_text("content-type"), span_text("text/plain")},
		{span_text(FILE_TIME_HEADER), span_text("12.5")},
		{span_text("x-amz-meta-own"), span_text("v")}};
	const struct object source = put_headers("from", "k", span_text("hello"), headers, 3);
	const struct object bare = put("from", "bare", span_text("bare"));
	struct batch_line lines[] = {copy("kept", &source), copy("said", &source),
		copy("bare", &bare), add("added", &source)};
	lines[1].has_mtime = true;
	lines[1].mtime_ms = 1600000000123;
	lines[1].content_type = span_text("application/json");
	run(lines, 4);
	struct object found = find("kept");
	ck_assert(span_equal_text(header(&found, "content-type"), "text/plain"));
	ck_assert(span_equal_text(header(&found, FILE_TIME_HEADER), "12.500"));
	ck_assert_uint_eq(found.header_count, 2);
	found = find("said");
	ck_assert(span_equal_text(header(&found, "content-type"), "application/json"));
	ck_assert(span_equal_text(header(&found, FILE_TIME_HEADER), "1600000000.123"));
	found = find("bare");
	/* when it was uploaded */
	ck_assert(span_equal_text(header(&found, FILE_TIME_HEADER), "1700000000.000"));
	found = find("added");
	ck_assert_uint_eq(found.header_count, 0);
}
END_TEST

/* An upload of one part, with a checksum of its parts' checksums. */
static void upload_in_parts(const char *key, struct span bytes)
{
	struct error err = {0};
	struct upload_create_params create = {.bucket = fixture_bucket("from"),
		.key = span_text(key),
		.initiator = span_text("main"),
		.checksum = CHECKSUM_CRC32,
		.type = CHECKSUM_COMPOSITE};
	struct upload_ref ref;
	struct uploaded_part part;
	struct upload_result result;
	struct upload_fault fault;
	ck_assert_msg(
		fixture_upload_create(fixture.store, &create, &ref, &err) == 0, "%s", err.text);
	ck_assert_msg(fixture_upload_put(fixture.store, &ref, 1, bytes, NULL, &part, &err) == 0,
		"%s", err.text);
	struct upload_listed_part listed = {.number = 1, .checksum = part.checksum};
	memcpy(listed.etag, part.etag, sizeof(listed.etag));
	struct upload_complete_params complete = {.ref = ref, .parts = &listed, .part_count = 1};
	ck_assert_msg(fixture_upload_complete(fixture.store, &complete, &result, &fault, &err) == 0,
		"%s", err.text);
}

static struct object find_hashed(const char *key)
{
	struct error err = {0};
	struct object object;
	ck_assert_int_eq(fixture_find(&fixture, "from", key, &object, &err), 0);
	struct settled *const settled = settled_new();
	struct file_hash_wait *const wait =
		file_hash_start(fixture.store, &object.sequence, 1, settled_done, settled);
	settled_wait(settled);
	ck_assert_msg(file_hash_outcome(wait, &err) == 0, "%s", err.text);
	file_hash_free(wait);
	ck_assert_int_eq(fixture_find(&fixture, "from", key, &object, &err), 0);
	return object;
}

START_TEST(a_copy_has_no_parts_and_no_checksum_of_parts)
{
	upload_in_parts("parts", span_of(noise, LARGE));
	const struct object source = find_hashed("parts");
	ck_assert_uint_eq(source.part_count, 1);
	ck_assert(source.has_file_hash && source.checksum.type == CHECKSUM_COMPOSITE);
	struct batch_line line = copy("copied", &source);
	run(&line, 1);
	ck_assert_msg(line.error.kind == ERROR_NONE, "%s", line.error.text);
	const struct object found = find("copied");
	ck_assert_uint_eq(found.part_count, 0);
	ck_assert_int_eq(found.checksum.algorithm, CHECKSUM_NONE);
	ck_assert(fixture_holds(&fixture, "box", "copied", span_of(noise, LARGE)));
}
END_TEST

/* The copy has an ACL, a storage class and tags of its own. */
START_TEST(what_is_said_of_a_source_besides_is_not_copied)
{
	struct error err = {0};
	struct object source;
	struct buffer tags;
	const struct tag tag = {span_text("own"), span_text("value")};
	buffer_init(&tags, 1000);
	tag_set_write(&tag, 1, &tags);
	struct object_put_params params = {.bucket = fixture_bucket("from"),
		.key = span_text("k"),
		.facts = {.tags = buffer_span(&tags),
			.storage_class = STORAGE_GLACIER,
			.acl = ACL_PUBLIC_READ}};
	ck_assert_msg(
		fixture_put_object(fixture.store, &params, span_text("hello"), &source, &err) == 0,
		"%s", err.text);
	struct batch_line line = copy("copied", &source);
	run(&line, 1);
	const struct object found = find("copied");
	ck_assert_int_eq(found.storage_class, STORAGE_STANDARD);
	ck_assert(found.acl == ACL_PRIVATE);
	ck_assert_uint_eq(found.tags.len, 0);
	/* it belongs to the bytes, so it stays */
	ck_assert_int_eq(found.checksum.algorithm, CHECKSUM_CRC64NVME);
	buffer_release(&tags);
}
END_TEST

START_TEST(what_a_key_held_before_is_not_copied)
{
	struct error err = {0};
	const struct bucket_edit edit = {.sets_versioning = true, .versioning = BUCKET_VERSIONED};
	ck_assert_int_eq(fixture_edit_bucket(fixture.store, "from", &edit, &err), 0);
	const struct object older = put("from", "k", span_text("older"));
	const struct object newer = put("from", "k", span_text("newer"));
	struct batch_line lines[] = {copy("a", &older), copy("b", &newer)};
	run(lines, 2);
	ck_assert_int_eq(lines[0].error.kind, ERROR_NOT_FOUND);
	ck_assert_int_eq(lines[1].error.kind, ERROR_NONE);
	ck_assert(!exists("a") && exists("b"));
}
END_TEST

START_TEST(a_versioned_bucket_keeps_what_lines_cover)
{
	struct error err = {0};
	const struct bucket_edit edit = {.sets_versioning = true, .versioning = BUCKET_VERSIONED};
	ck_assert_int_eq(fixture_edit_bucket(fixture.store, "box", &edit, &err), 0);
	const struct object one = put("from", "1", span_text("one"));
	struct batch_line lines[] = {
		copy("k", &one), copy("k", &one), delete ("k"), delete ("k"), delete ("absent")};
	run(lines, 5);
	ck_assert(!exists("k"));
	ck_assert_int_eq(
		fixture_count(fixture.store,
			"SELECT COUNT(*) FROM versions WHERE key = CAST('k' AS BLOB) AND is_marker = 0"),
		2);
	/* A deleted file is not deleted again: a repeated request changes nothing. */
	ck_assert_int_eq(
		fixture_count(fixture.store, "SELECT COUNT(*) FROM versions WHERE is_marker = 1"),
		1);
	struct batch_line again = copy("k", &one);
	run(&again, 1);
	ck_assert(fixture_holds(&fixture, "box", "k", span_text("one")));
}
END_TEST

START_TEST(keys_of_the_server_are_refused_line_by_line)
{
	struct error err = {0};
	const struct object one = put("from", "1", span_text("one"));
	ck_assert_int_eq(fixture_open_run(fixture.store, "box", "r", NULL, &err), 0);
	struct batch_line lines[] = {copy("r/anchors/x", &one), delete ("r/anchors/x"),
		copy("r/x", &one), judge("r/anchors/y"), judge("r/x")};
	run(lines, 5);
	for (size_t i = 0; i < 5; i++)
		ck_assert_int_eq(lines[i].error.kind, i == 2 || i == 4 ? ERROR_NONE : ERROR_DENIED);
	ck_assert(exists("r/x"));
}
END_TEST

START_TEST(a_bucket_that_is_another_by_now_is_left_alone)
{
	struct error err = {0};
	const struct object one = put("from", "1", span_text("one"));
	struct batch_line line = copy("k", &one);
	ck_assert_int_eq(run_in(999, &line, 1, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_BUCKET);
	ck_assert(!exists("k"));
}
END_TEST

START_TEST(a_damaged_source_fails_its_line_alone)
{
	struct error err = {0};
	const struct object one = put("from", "1", span_of(noise, LARGE));
	const struct object two = put("from", "2", span_text("two"));
	ck_assert_int_eq(
		fixture_run(fixture.store,
			"UPDATE versions SET size = size + 1 WHERE key = CAST('1' AS BLOB)", &err),
		0);
	struct batch_line lines[] = {copy("a", &one), copy("b", &two)};
	run(lines, 2);
	ck_assert_int_eq(lines[0].error.kind, ERROR_CORRUPT);
	ck_assert_int_eq(lines[1].error.kind, ERROR_NONE);
	ck_assert(!exists("a") && exists("b"));
}
END_TEST

START_TEST(a_thousand_lines_are_one_change)
{
	struct batch_line *const lines = calloc(BATCH_LINES_MAX, sizeof(*lines));
	const struct object one = put("from", "1", span_of(noise, LARGE));
	ck_assert_ptr_nonnull(lines);
	for (size_t i = 0; i < BATCH_LINES_MAX; i++)
		lines[i] = copy(arena_format(fixture.arena, "d/%04zu", i), &one);
	run(lines, BATCH_LINES_MAX);
	for (size_t i = 0; i < BATCH_LINES_MAX; i++)
		ck_assert_int_eq(lines[i].error.kind, ERROR_NONE);
	ck_assert_int_eq(
		fixture_count(fixture.store,
			"SELECT COUNT(*) FROM versions WHERE key >= CAST('d/' AS BLOB) AND key < CAST('d0' AS BLOB)"),
		BATCH_LINES_MAX);
	ck_assert(fixture_holds(&fixture, "box", "d/0999", span_of(noise, LARGE)));
	free(lines);
}
END_TEST

Suite *test_batch_suite(void);
Suite *test_batch_suite(void)
{
	const int last = sizeof(sizes) / sizeof(sizes[0]);
	Suite *const suite = suite_create("batch");
	TCase *const tests = tcase_create("batch");
	tcase_set_timeout(tests, 60);
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_loop_test(
		tests, files_are_copied_without_their_bytes_and_outlive_their_source, 0, last);
	tcase_add_loop_test(tests, a_file_of_the_bucket_is_added_again_even_onto_itself, 0, last);
	tcase_add_test(tests, a_registered_file_becomes_a_version_that_outlives_the_registration);
	tcase_add_test(tests, a_file_that_another_account_has_registered_is_none);
	tcase_add_test(tests, a_registration_that_is_over_opens_nothing);
	tcase_add_test(tests, a_line_that_fails_leaves_the_others_alone);
	tcase_add_test(tests, lines_apply_in_their_order);
	tcase_add_test(tests, the_empty_file_needs_no_source);
	tcase_add_test(tests, times_and_types_come_from_the_line_else_from_the_source);
	tcase_add_test(tests, a_copy_has_no_parts_and_no_checksum_of_parts);
	tcase_add_test(tests, what_is_said_of_a_source_besides_is_not_copied);
	tcase_add_test(tests, what_a_key_held_before_is_not_copied);
	tcase_add_test(tests, a_versioned_bucket_keeps_what_lines_cover);
	tcase_add_test(tests, keys_of_the_server_are_refused_line_by_line);
	tcase_add_test(tests, a_bucket_that_is_another_by_now_is_left_alone);
	tcase_add_test(tests, a_damaged_source_fails_its_line_alone);
	tcase_add_test(tests, a_thousand_lines_are_one_change);
	suite_add_tcase(suite, tests);
	return suite;
}
