/* Tests uploads of few bytes: which may begin and end, and which are listed. */
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

#include "base/digest/digest.h"
#include "base/encode.h"
#include "storage/objects/object_read.h"
#include "storage/open/store_open.h"
#include "storage/upkeep/bucket_delete.h"
#include "tests/unit/storage/hold_fixture.h"
#include "tests/unit/storage/store_fixture.h"
#include "tests/unit/storage/upload_fixture.h"

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

static struct upload_create_params params_of(const char *key)
{
	return (struct upload_create_params){.bucket = fixture_bucket("weights"),
		.key = span_text(key),
		.initiator = span_text("main")};
}

static struct upload_ref begin(const char *key)
{
	struct upload_create_params params = params_of(key);
	struct upload_ref ref;
	ck_assert_msg(
		fixture_upload_create(fixture.store, &params, &ref, &err) == 0, "%s", err.text);
	return ref;
}

static void expect_refused(struct upload_create_params params, enum error_kind kind)
{
	struct upload_ref ref;
	ck_assert_int_eq(fixture_upload_create(fixture.store, &params, &ref, &err), -1);
	ck_assert_int_eq(err.kind, kind);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM uploads"), 0);
}

static struct uploaded_part put(const struct upload_ref *ref, uint32_t number, const char *text)
{
	struct uploaded_part part;
	ck_assert_msg(fixture_upload_put(
			      fixture.store, ref, number, span_text(text), NULL, &part, &err) == 0,
		"%s", err.text);
	return part;
}

static int complete_one(const struct upload_ref *ref, const struct uploaded_part *part)
{
	const struct upload_listed_part listed = fixture_upload_listed(part);
	return fixture_upload_complete_parts(fixture.store, ref, &listed, 1, &err);
}

START_TEST(what_was_said_of_an_upload_is_shown)
{
	struct upload_create_params params = params_of("model");
	struct upload_ref ref;
	struct upload upload;
	struct upload_parts parts;
	params.initiator = span_text("trainer");
	params.checksum = CHECKSUM_CRC32;
	params.type = CHECKSUM_COMPOSITE;
	params.facts.storage_class = STORAGE_STANDARD_IA;
	const int64_t begun_ms = fixture.clock.now_ms;
	ck_assert_int_eq(fixture_upload_create(fixture.store, &params, &ref, &err), 0);
	fixture.clock.now_ms += 5000;
	const struct uploaded_part part = put(&ref, 7, "bytes");
	ck_assert_int_eq(part.modified_ms, begun_ms + 5000);
	ck_assert_int_eq(upload_find(fixture.store, &ref, fixture.arena, &upload, &err), 0);
	ck_assert(span_equal_text(upload.initiator, "trainer") &&
		span_equal_text(upload.key, "model"));
	ck_assert(upload.created_ms == begun_ms && upload.storage_class == STORAGE_STANDARD_IA);
	ck_assert(upload.checksum.is_named && upload.checksum.algorithm == CHECKSUM_CRC32 &&
		upload.checksum.type == CHECKSUM_COMPOSITE);
	ck_assert_int_eq(upload_list_parts(fixture.store, &ref, (struct upload_parts_range){0, 10},
				 fixture.arena, &parts, &err),
		0);
	ck_assert(parts.count == 1 && parts.parts[0].modified_ms == begun_ms + 5000 &&
		parts.parts[0].number == 7);
	ck_assert(span_equal_text(parts.upload.initiator, "trainer") &&
		parts.upload.storage_class == STORAGE_STANDARD_IA);
}
END_TEST

START_TEST(the_tags_and_headers_of_an_upload_are_the_objects)
{
	static const uint8_t tags[] = {1, 0, 'k', 1, 0, 'v'};
	const struct object_header header = {span_text("content-type"), span_text("text/plain")};
	struct upload_create_params params = params_of("model");
	struct upload_ref ref;
	struct object object;
	params.facts = (struct object_facts){
		.headers = &header, .header_count = 1, .tags = span_of(tags, sizeof tags)};
	ck_assert_int_eq(fixture_upload_create(fixture.store, &params, &ref, &err), 0);
	const struct uploaded_part part = put(&ref, 1, "bytes");
	ck_assert_int_eq(complete_one(&ref, &part), 0);
	ck_assert_int_eq(fixture_find(&fixture, "weights", "model", &object, &err), 0);
	ck_assert_int_eq(fixture_count(fixture.store,
				 "SELECT COUNT(*) FROM versions WHERE tags = x'01006b010076'"),
		1);
	ck_assert(
		object.header_count == 1 && span_equal_text(object.headers[0].value, "text/plain"));
}
END_TEST

/* Whichever bytes of the ids differ, those of the time come first and rise. */
START_TEST(uploads_of_a_key_lie_in_the_order_of_their_beginning)
{
	static const int64_t steps[] = {1, 255, 256, 65536, 70000, 16777216, 4294967296};
	enum { COUNT = 8 };
	struct upload_ref refs[COUNT];
	struct upload_list list;
	for (size_t i = 0; i < COUNT; i++) {
		refs[i] = begin("model");
		fixture.clock.now_ms += i < COUNT - 1 ? steps[i] : 0;
	}
	const struct upload_list_params params = {
		.bucket = fixture_bucket("weights"), .limit = COUNT};
	ck_assert_int_eq(upload_list(fixture.store, &params, fixture.arena, &list, &err), 0);
	ck_assert(list.upload_count == COUNT && !list.truncated);
	for (size_t i = 0; i < COUNT; i++)
		ck_assert_mem_eq(list.uploads[i].id.bytes, refs[i].id.bytes, UPLOAD_ID_BYTES);
}
END_TEST

START_TEST(what_no_object_could_be_is_refused)
{
	char key[OBJECT_KEY_MAX_BYTES + 2];
	memset(key, 'k', sizeof key);
	key[sizeof key - 1] = '\0';
	struct upload_create_params params = params_of(key);
	expect_refused(params, ERROR_KEY_TOO_LONG);
	params = params_of("model");
	params.facts.storage_class = STORAGE_CLASSES;
	expect_refused(params, ERROR_INVALID);
	params = params_of("model");
	params.bucket = fixture_bucket("none");
	expect_refused(params, ERROR_NO_BUCKET);
}
END_TEST

START_TEST(keys_of_the_server_are_refused)
{
	const struct upload_ref ref = begin("run/anchors/step_000005/model");
	const struct uploaded_part part = put(&ref, 1, "bytes");
	ck_assert_int_eq(fixture_open_run(fixture.store, "weights", "run", NULL, &err), 0);
	ck_assert_int_eq(complete_one(&ref, &part), -1);
	ck_assert_int_eq(err.kind, ERROR_DENIED);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM versions"), 0);
	ck_assert_int_eq(fixture_upload_abort(fixture.store, &ref, &err), 0);
	expect_refused(params_of("run/anchors/step_000006/model"), ERROR_DENIED);
}
END_TEST

/* The caller was authorised for that bucket, and not for a later one with its name. */
START_TEST(an_upload_does_not_begin_in_another_bucket_of_the_name)
{
	struct upload_create_params params = params_of("model");
	struct committer_hold *const hold = committer_hold_new(fixture.store);
	struct call *const calls[] = {bucket_delete_call(fixture.store, params.bucket),
		bucket_create_call(fixture.store, params.bucket.name, span_text("other"), NULL),
		upload_create_call(fixture.store, &params, &err)};
	struct settled *settled[3];
	for (size_t i = 0; i < 3; i++) {
		ck_assert_ptr_nonnull(calls[i]);
		settled[i] = settled_new();
		call_start(calls[i], settled_done, settled[i]);
	}
	committer_hold_end(hold);
	for (size_t i = 0; i < 3; i++)
		ck_assert_int_eq(fixture_settle(calls[i], settled[i], &err), i < 2 ? 0 : -1);
	ck_assert_int_eq(err.kind, ERROR_NO_BUCKET);
}
END_TEST

static const struct {
	bool server_is_fast;
	enum etag_policy bucket;
	bool is_fast;
} policies[] = {
	{false, ETAG_DEFAULT, false},
	{false, ETAG_MD5, false},
	{false, ETAG_FAST, true},
	{true, ETAG_DEFAULT, true},
	{true, ETAG_MD5, false},
	{true, ETAG_FAST, true},
};

static void reopen_with(bool fast_etags)
{
	const struct store_options options = {
		.folder = fixture.folder, .clock = &fixture.clock.source, .fast_etags = fast_etags};
	store_fixture_stop(&fixture);
	fixture.store = store_open(&options, &err);
	ck_assert_msg(fixture.store != NULL, "%s", err.text);
	fixture_await_start(fixture.store);
}

START_TEST(etags_are_what_the_bucket_or_else_the_server_says)
{
	const struct bucket_edit edit = {
		.sets_etag_policy = true, .etag_policy = policies[_i].bucket};
	uint8_t md5[MD5_BYTES];
	char etag[OBJECT_ETAG_BYTES];
	reopen_with(policies[_i].server_is_fast);
	ck_assert_int_eq(fixture_edit_bucket(fixture.store, "weights", &edit, &err), 0);
	const struct upload_ref ref = begin("model");
	const struct uploaded_part part = put(&ref, 1, "bytes");
	struct md5_stream *const stream = md5_stream_new();
	md5_stream_add(stream, span_text("bytes"));
	md5_stream_result(stream, md5);
	md5_stream_free(stream);
	encode_hex(span_of(md5, sizeof md5), etag);
	ck_assert_int_eq(strcmp(part.etag, etag) != 0, policies[_i].is_fast);
}
END_TEST

START_TEST(only_the_same_list_completes_again)
{
	const struct upload_ref ref = begin("model");
	const struct uploaded_part part = put(&ref, 3, "bytes");
	const struct upload_listed_part listed = fixture_upload_listed(&part);
	struct upload_listed_part other = listed;
	ck_assert_int_eq(fixture_upload_complete_parts(fixture.store, &ref, &listed, 1, &err), 0);
	ck_assert_int_eq(fixture_upload_complete_parts(fixture.store, &ref, &listed, 1, &err), 0);
	other.number = 4;
	ck_assert_int_eq(fixture_upload_complete_parts(fixture.store, &ref, &other, 1, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_UPLOAD);
	other = listed;
	other.etag[0] = other.etag[0] == '0' ? '1' : '0';
	ck_assert_int_eq(fixture_upload_complete_parts(fixture.store, &ref, &other, 1, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_UPLOAD);
}
END_TEST

START_TEST(a_part_that_is_not_there_is_named)
{
	const struct upload_ref ref = begin("model");
	const struct uploaded_part part = put(&ref, 3, "bytes");
	struct upload_listed_part listed = fixture_upload_listed(&part);
	struct upload_result result;
	struct upload_fault fault;
	for (uint32_t number = 1; number <= 5; number++) {
		struct upload_complete_params params = {
			.ref = ref, .parts = &listed, .part_count = 1};
		if (number == 3)
			continue;
		listed.number = number;
		ck_assert_int_eq(
			fixture_upload_complete(fixture.store, &params, &result, &fault, &err), -1);
		ck_assert_int_eq(err.kind, ERROR_INVALID_PART);
		ck_assert_uint_eq(fault.number, number);
		ck_assert_str_eq(fault.etag, part.etag);
	}
}
END_TEST

enum { SOURCE_BYTES = 700000 };

static struct uploaded_part put_noise(const struct upload_ref *ref, uint32_t number, size_t size)
{
	struct uploaded_part part;
	uint8_t *const noise = fixture_noise(size, number);
	ck_assert_msg(fixture_upload_put(fixture.store, ref, number, span_of(noise, size), NULL,
			      &part, &err) == 0,
		"%s", err.text);
	free(noise);
	return part;
}

START_TEST(all_parts_but_the_last_have_the_least_size)
{
	const struct upload_ref ref = begin("model");
	struct upload_listed_part listed[2];
	const struct uploaded_part last = put(&ref, 9, "last");
	const struct uploaded_part whole = put_noise(&ref, 1, UPLOAD_PART_MIN_BYTES);
	const struct uploaded_part small = put_noise(&ref, 2, UPLOAD_PART_MIN_BYTES - 1);
	listed[1] = fixture_upload_listed(&last);
	listed[0] = fixture_upload_listed(&small);
	ck_assert_int_eq(fixture_upload_complete_parts(fixture.store, &ref, listed, 2, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_PART_TOO_SMALL);
	listed[0] = fixture_upload_listed(&whole);
	ck_assert_msg(fixture_upload_complete_parts(fixture.store, &ref, listed, 2, &err) == 0,
		"%s", err.text);
}
END_TEST

static int complete_with(struct upload_complete_params params, const struct upload_ref *ref,
	const struct uploaded_part *part)
{
	struct upload_listed_part listed = fixture_upload_listed(part);
	struct upload_result result;
	struct upload_fault fault;
	listed.checksum = part->checksum;
	params.ref = *ref;
	params.parts = &listed;
	params.part_count = 1;
	return fixture_upload_complete(fixture.store, &params, &result, &fault, &err);
}

static void expect_invalid(struct upload_complete_params params, const struct upload_ref *ref,
	const struct uploaded_part *part)
{
	ck_assert_int_eq(complete_with(params, ref, part), -1);
	ck_assert_int_eq(err.kind, ERROR_INVALID_REQUEST);
}

START_TEST(what_is_expected_of_the_whole_must_hold)
{
	const struct upload_ref ref = begin("model");
	const struct uploaded_part part = put(&ref, 1, "bytes");
	for (uint64_t size = 4; size <= 6; size += 2)
		expect_invalid((struct upload_complete_params){.has_size = true, .size = size},
			&ref, &part);
	ck_assert_int_eq(complete_with((struct upload_complete_params){.has_size = true, .size = 5},
				 &ref, &part),
		0);
}
END_TEST

static const enum checksum_type types[] = {CHECKSUM_FULL_OBJECT, CHECKSUM_COMPOSITE};

START_TEST(a_completion_has_the_checksum_that_was_named)
{
	struct upload_create_params params = params_of("model");
	struct upload_ref ref;
	params.checksum = CHECKSUM_CRC32C;
	params.type = types[_i];
	ck_assert_int_eq(fixture_upload_create(fixture.store, &params, &ref, &err), 0);
	const struct uploaded_part part = put(&ref, 1, "bytes");
	expect_invalid((struct upload_complete_params){.has_type = true, .type = types[1 - _i]},
		&ref, &part);
	expect_invalid((struct upload_complete_params){.checksum = {.algorithm = CHECKSUM_CRC32,
							       .len = 4}},
		&ref, &part);
	expect_invalid((struct upload_complete_params){.checksum = {.algorithm = CHECKSUM_SHA256,
							       .len = 32}},
		&ref, &part);
}
END_TEST

/* The ETag of the whole is made of the MD5 or digest of each part. */
START_TEST(the_etag_of_a_fast_upload_is_made_of_digests)
{
	const struct bucket_edit fast = {.sets_etag_policy = true, .etag_policy = ETAG_FAST};
	uint8_t bytes[2 * MD5_BYTES];
	char etag[OBJECT_ETAG_BYTES];
	struct uploaded_part parts[2];
	struct object object;
	ck_assert_int_eq(fixture_edit_bucket(fixture.store, "weights", &fast, &err), 0);
	uint8_t *const noise = fixture_noise(SOURCE_BYTES, 8);
	const struct upload_ref ref = begin("model");
	parts[0] = put_noise(&ref, 1, UPLOAD_PART_MIN_BYTES);
	ck_assert_int_eq(fixture_edit_bucket(fixture.store, "weights",
				 &(struct bucket_edit){.sets_etag_policy = true}, &err),
		0);
	ck_assert_int_eq(
		fixture_put(fixture.store, "weights", "plain", span_of(noise, SOURCE_BYTES), &err),
		0);
	ck_assert_int_eq(fixture_find(&fixture, "weights", "plain", &object, &err), 0);
	ck_assert_int_eq(fixture_upload_copy(
				 fixture.store, &ref, 2, &object, 0, object.size, &parts[1], &err),
		0);
	ck_assert(strlen(parts[0].etag) > (size_t)2 * MD5_BYTES &&
		strlen(parts[1].etag) == (size_t)2 * MD5_BYTES);
	for (size_t i = 0; i < 2; i++)
		ck_assert(decode_hex(span_of((const uint8_t *)parts[i].etag, (size_t)2 * MD5_BYTES),
			bytes + i * MD5_BYTES, MD5_BYTES));
	const struct upload_listed_part listed[] = {
		fixture_upload_listed(&parts[0]), fixture_upload_listed(&parts[1])};
	ck_assert_msg(fixture_upload_complete_parts(fixture.store, &ref, listed, 2, &err) == 0,
		"%s", err.text);
	const struct digest128 digest = xxh3_128(span_of(bytes, sizeof bytes));
	encode_hex(span_of(digest.bytes, sizeof digest.bytes), etag);
	memcpy(etag + (size_t)2 * MD5_BYTES, "-2", sizeof "-2");
	ck_assert_int_eq(fixture_find(&fixture, "weights", "model", &object, &err), 0);
	ck_assert_str_eq(object.etag, etag);
	free(noise);
}
END_TEST

START_TEST(only_part_numbers_that_there_are_can_be_sent)
{
	const struct upload_ref ref = begin("model");
	static const uint32_t wrong[] = {0, UPLOAD_PARTS_MAX + 1};
	struct upload_parts parts;
	for (size_t i = 0; i < 2; i++) {
		ck_assert_int_eq(fixture_upload_put(fixture.store, &ref, wrong[i],
					 span_text("bytes"), NULL, NULL, &err),
			-1);
		ck_assert_int_eq(err.kind, ERROR_INVALID);
	}
	put(&ref, UPLOAD_PARTS_MAX, "bytes");
	for (uint32_t after = UPLOAD_PARTS_MAX - 1; after <= UPLOAD_PARTS_MAX + 1; after++) {
		ck_assert_int_eq(upload_list_parts(fixture.store, &ref,
					 (struct upload_parts_range){after, 10}, fixture.arena,
					 &parts, &err),
			0);
		ck_assert_uint_eq(parts.count, after < UPLOAD_PARTS_MAX);
		ck_assert(!parts.truncated);
	}
	ck_assert_int_eq(
		upload_list_parts(fixture.store, &ref, (struct upload_parts_range){UINT32_MAX, 10},
			fixture.arena, &parts, &err),
		0);
	ck_assert_uint_eq(parts.count, 0);
}
END_TEST

static struct upload_list list_uploads(struct upload_list_params params)
{
	struct upload_list list;
	ck_assert_msg(upload_list(fixture.store, &params, fixture.arena, &list, &err) == 0, "%s",
		err.text);
	return list;
}

START_TEST(a_prefix_and_a_delimiter_go_together)
{
	begin("a/1");
	begin("a/b/2");
	begin("a/b/3");
	begin("b");
	struct upload_list_params params = {.bucket = fixture_bucket("weights"),
		.prefix = span_text("a/"),
		.delimiter = span_text("/"),
		.limit = 10};
	const struct upload_list all = list_uploads(params);
	ck_assert(all.upload_count == 1 && all.prefix_count == 1 && !all.truncated);
	ck_assert(span_equal_text(all.uploads[0].key, "a/1") &&
		span_equal_text(all.prefixes[0], "a/b/"));
	ck_assert(span_equal_text(all.last_key, "a/b/"));
	params.limit = 1;
	const struct upload_list first = list_uploads(params);
	ck_assert(first.upload_count == 1 && first.prefix_count == 0 && first.truncated);
	params.limit = 0;
	const struct upload_list none = list_uploads(params);
	ck_assert(none.upload_count == 0 && none.prefix_count == 0 && !none.truncated);
}
END_TEST

/* "b0" is the first key behind all that begin with "b/". Its upload was created before the one
 * behind which the page continues. */
START_TEST(a_page_misses_nothing_behind_a_prefix)
{
	begin("b0");
	fixture.clock.now_ms += 10;
	const struct upload_ref first = begin("a");
	begin("b/x");
	const struct upload_list list =
		list_uploads((struct upload_list_params){.bucket = fixture_bucket("weights"),
			.delimiter = span_text("/"),
			.after_key = span_text("a"),
			.has_after_id = true,
			.after_id = first.id,
			.limit = 10});
	ck_assert(list.prefix_count == 1 && list.upload_count == 1);
	ck_assert(span_equal_text(list.prefixes[0], "b/") &&
		span_equal_text(list.uploads[0].key, "b0"));
}
END_TEST

START_TEST(prefixes_that_end_with_the_largest_byte_are_listed_once)
{
	begin("a\xff"
	      "1");
	begin("a\xff"
	      "2");
	begin("b");
	begin("\xff"
	      "1");
	const struct upload_list list = list_uploads((struct upload_list_params){
		.bucket = fixture_bucket("weights"), .delimiter = span_text("\xff"), .limit = 10});
	ck_assert(list.prefix_count == 2 && list.upload_count == 1 && !list.truncated);
	ck_assert(span_equal_text(list.prefixes[0], "a\xff") &&
		span_equal_text(list.prefixes[1], "\xff"));
}
END_TEST

START_TEST(a_position_that_no_key_can_have_is_refused)
{
	struct upload_list list;
	uint8_t *const text = fixture_noise((size_t)9 * OBJECT_KEY_MAX_BYTES, 1);
	const struct span longer = span_of(text, (size_t)9 * OBJECT_KEY_MAX_BYTES);
	const struct upload_list_params params[] = {
		{.bucket = fixture_bucket("weights"), .after_key = longer, .limit = 1},
		{.bucket = fixture_bucket("weights"), .prefix = longer, .limit = 1}};
	for (size_t i = 0; i < 2; i++) {
		ck_assert_int_eq(
			upload_list(fixture.store, &params[i], fixture.arena, &list, &err), -1);
		ck_assert_int_eq(err.kind, ERROR_INVALID);
	}
	free(text);
}
END_TEST

/* Sends a part with these declared digests. Returns the call, which has ended. */
static struct call *send(
	const struct upload_ref *ref, const uint8_t *md5, const struct checksum *checksum)
{
	struct error failure;
	struct upload_put_params params = {.ref = *ref,
		.number = 1,
		.has_content_md5 = md5 != NULL,
		.checksum = checksum != NULL ? checksum->algorithm : CHECKSUM_NONE};
	if (md5 != NULL)
		memcpy(params.content_md5, md5, MD5_BYTES);
	struct upload_put *const sent = upload_put_open(fixture.store, &params, &err);
	ck_assert_msg(sent != NULL, "%s", err.text);
	ck_assert_int_eq(upload_put_write(sent, span_text("bytes"), &err), SINK_TAKEN);
	if (checksum != NULL)
		upload_put_expect(sent, checksum);
	call_run(upload_put_call(sent), &failure);
	return upload_put_call(sent);
}

START_TEST(the_md5_of_a_part_is_checked)
{
	static const uint8_t wrong[MD5_BYTES] = {1};
	const struct bucket_edit edit = {
		.sets_etag_policy = true, .etag_policy = _i == 0 ? ETAG_MD5 : ETAG_FAST};
	uint8_t right[MD5_BYTES];
	struct md5_stream *const stream = md5_stream_new();
	md5_stream_add(stream, span_text("bytes"));
	md5_stream_result(stream, right);
	md5_stream_free(stream);
	ck_assert_int_eq(fixture_edit_bucket(fixture.store, "weights", &edit, &err), 0);
	const struct upload_ref ref = begin("model");
	struct call *const bad = send(&ref, wrong, NULL);
	ck_assert_int_eq(call_outcome(bad, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_BAD_DIGEST);
	call_free(bad);
	struct call *const good = send(&ref, right, NULL);
	ck_assert_msg(call_outcome(good, &err) == 0, "%s", err.text);
	call_free(good);
}
END_TEST

START_TEST(a_checksum_that_differs_is_told_with_the_right_one)
{
	const struct checksum wrong = {
		.algorithm = CHECKSUM_CRC32, .len = 4, .bytes = {1, 2, 3, 4}};
	struct checksum expected;
	struct checksum actual;
	struct checksum right;
	const struct upload_ref ref = begin("model");
	struct checksum_stream *const stream = checksum_stream_new(CHECKSUM_CRC32);
	checksum_stream_add(stream, span_text("bytes"));
	checksum_stream_result(stream, &right);
	checksum_stream_free(stream);
	struct call *const sent = send(&ref, NULL, &wrong);
	ck_assert_int_eq(call_outcome(sent, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_BAD_DIGEST);
	ck_assert(upload_put_bad_checksum(sent, &expected, &actual));
	ck_assert(checksum_equal(&expected, &wrong) && checksum_equal(&actual, &right));
	call_free(sent);
}
END_TEST

Suite *test_upload_rules_suite(void);
Suite *test_upload_rules_suite(void)
{
	Suite *const suite = suite_create("upload_rules");
	TCase *const tests = tcase_create("upload_rules");
	tcase_set_timeout(tests, 60);
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, what_was_said_of_an_upload_is_shown);
	tcase_add_test(tests, the_tags_and_headers_of_an_upload_are_the_objects);
	tcase_add_test(tests, uploads_of_a_key_lie_in_the_order_of_their_beginning);
	tcase_add_test(tests, what_no_object_could_be_is_refused);
	tcase_add_test(tests, keys_of_the_server_are_refused);
	tcase_add_test(tests, an_upload_does_not_begin_in_another_bucket_of_the_name);
	tcase_add_loop_test(tests, etags_are_what_the_bucket_or_else_the_server_says, 0,
		sizeof policies / sizeof *policies);
	tcase_add_test(tests, only_the_same_list_completes_again);
	tcase_add_test(tests, a_part_that_is_not_there_is_named);
	tcase_add_test(tests, all_parts_but_the_last_have_the_least_size);
	tcase_add_loop_test(tests, the_md5_of_a_part_is_checked, 0, 2);
	tcase_add_test(tests, a_checksum_that_differs_is_told_with_the_right_one);
	tcase_add_loop_test(tests, a_completion_has_the_checksum_that_was_named, 0, 2);
	tcase_add_test(tests, what_is_expected_of_the_whole_must_hold);
	tcase_add_test(tests, the_etag_of_a_fast_upload_is_made_of_digests);
	tcase_add_test(tests, only_part_numbers_that_there_are_can_be_sent);
	tcase_add_test(tests, a_prefix_and_a_delimiter_go_together);
	tcase_add_test(tests, a_page_misses_nothing_behind_a_prefix);
	tcase_add_test(tests, a_position_that_no_key_can_have_is_refused);
	tcase_add_test(tests, prefixes_that_end_with_the_largest_byte_are_listed_once);
	suite_add_tcase(suite, tests);
	return suite;
}
