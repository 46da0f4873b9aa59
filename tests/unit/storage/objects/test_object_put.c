#include "tests/unit/unit.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest/md5.h"
#include "storage/objects/object_put.h"
#include "storage/objects/object_read.h"
#include "storage/open/store_open.h"
#include "tests/unit/storage/store_fixture.h"

static struct store_fixture fixture;

static void set_up(void)
{
	struct error err = {0};
	memset(&fixture, 0, sizeof(fixture));
	store_fixture_open(&fixture);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "weights", "main", &err), 0);
}

static void tear_down(void)
{
	store_fixture_close(&fixture);
}

/* Every writer adds 1 to the number that it read, if it is still there. No addition may be lost. */
enum { WRITERS = 16, ADDITIONS = 8 };

static bool read_number(struct arena *arena, struct object *out, int *out_number)
{
	const struct object_ref ref = {
		.bucket = bucket_named(span_text("weights")), .key = span_text("number")};
	struct error err = {0};
	struct buffer text;
	buffer_init(&text, 200000);
	const bool read = object_find(fixture.store, &ref, arena, out, &err) == 0 &&
		fixture_read(fixture.store, out, 0, out->size, &text, &err) == 0;
	ck_assert(read || err.kind == ERROR_NO_KEY); /* it was overwritten between find and open */
	*out_number = (int)strtol(buffer_text(&text), NULL, 10);
	buffer_release(&text);
	return read;
}

static void *write_numbers(void *lost)
{
	for (int done = 0; done < ADDITIONS;) {
		struct error err = {0};
		struct object object;
		int number = 0;
		char text[16];
		struct arena *const arena = arena_new(100000);
		if (read_number(arena, &object, &number)) {
			struct object_put_params params = {
				.bucket = bucket_named(span_text("weights")),
				.key = span_text("number"),
				.conditions.if_match = span_text(object.etag)};
			snprintf(text, sizeof(text), "%d", number + 1);
			const int result = fixture_put_with(
				fixture.store, &params, span_text(text), NULL, &err);
			ck_assert(result == 0 || err.kind == ERROR_PRECONDITION);
			done += result == 0;
			*(int *)lost += result != 0;
		}
		arena_free(arena);
	}
	return NULL;
}

START_TEST(racing_conditional_puts_lose_no_update)
{
	struct error err = {0};
	pthread_t threads[WRITERS];
	int lost[WRITERS] = {0};
	char text[16];
	ck_assert_int_eq(fixture_put(fixture.store, "weights", "number", span_text("0"), &err), 0);
	for (int i = 0; i < WRITERS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, write_numbers, &lost[i]), 0);
	for (int i = 0; i < WRITERS; i++)
		pthread_join(threads[i], NULL);
	snprintf(text, sizeof(text), "%d", WRITERS * ADDITIONS);
	ck_assert(fixture_holds(&fixture, "weights", "number", span_text(text)));
}
END_TEST

START_TEST(what_is_said_of_an_object_comes_back)
{
	struct error err = {0};
	struct object object;
	struct checksum expected;
	static const uint8_t tags[] = {1, 0, 'k', 1, 0, 'v'};
	struct object_put_params params = {.bucket = bucket_named(span_text("weights")),
		.key = span_text("k"),
		.checksum = CHECKSUM_SHA1,
		.facts = {.tags = span_of(tags, sizeof(tags)),
			.storage_class = STORAGE_GLACIER_IR,
			.acl = ACL_PUBLIC_READ}};
	ck_assert_int_eq(
		fixture_put_with(fixture.store, &params, span_text("bytes"), NULL, &err), 0);
	ck_assert_int_eq(fixture_find(&fixture, "weights", "k", &object, &err), 0);
	ck_assert(span_equal(object.tags, span_of(tags, sizeof(tags))));
	ck_assert_int_eq(object.storage_class, STORAGE_GLACIER_IR);
	ck_assert_str_eq(storage_class_name(object.storage_class), "GLACIER_IR");
	ck_assert(object.acl == ACL_PUBLIC_READ && !object.has_id && !object.is_marker &&
		object.part_count == 0);
	checksum_of(CHECKSUM_SHA1, span_text("bytes"), &expected);
	ck_assert(checksum_equal(&object.checksum, &expected));
	params = (struct object_put_params){
		.bucket = bucket_named(span_text("weights")), .key = span_text("k")};
	ck_assert_int_eq(
		fixture_put_with(fixture.store, &params, span_text("bytes"), NULL, &err), 0);
	ck_assert_int_eq(fixture_find(&fixture, "weights", "k", &object, &err), 0);
	/* when no checksum was asked for */
	checksum_of(CHECKSUM_CRC64NVME, span_text("bytes"), &expected);
	ck_assert(checksum_equal(&object.checksum, &expected));
	ck_assert(object.acl == ACL_PRIVATE && object.tags.len == 0);
}
END_TEST

static int put_expecting(size_t len, const struct checksum *checksum, struct error *err)
{
	struct checksum expected;
	struct checksum actual;
	uint8_t *const bytes = fixture_noise(len, 8);
	const struct object_put_params params = {.bucket = bucket_named(span_text("weights")),
		.key = span_text("expected"),
		.checksum = checksum->algorithm};
	struct object_put *const put = object_put_open(fixture.store, &params, err);
	ck_assert_ptr_nonnull(put);
	ck_assert_int_eq(object_put_write(put, span_of(bytes, len), err), SINK_TAKEN);
	object_put_expect(put, checksum);
	struct call *const call = object_put_call(put);
	const int result = call_run(call, err);
	ck_assert_int_eq(object_put_bad_checksum(call, &expected, &actual), result != 0);
	if (result != 0) {
		struct checksum real;
		checksum_of(checksum->algorithm, span_of(bytes, len), &real);
		ck_assert(checksum_equal(&expected, checksum) && checksum_equal(&actual, &real));
	}
	call_free(call);
	free(bytes);
	return result;
}

START_TEST(a_body_with_another_checksum_is_refused)
{
	static const size_t sizes[] = {10, 5000, 600000};
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct error err = {0};
		struct object object;
		struct checksum checksum;
		uint8_t *const bytes = fixture_noise(sizes[i], 8);
		checksum_of((enum checksum_algorithm)_i, span_of(bytes, sizes[i]), &checksum);
		ck_assert_msg(put_expecting(sizes[i], &checksum, &err) == 0, "%s", err.text);
		ck_assert_int_eq(
			fixture_delete(fixture.store, "weights", "expected", NULL, &err), 0);
		checksum.bytes[0] ^= 1;
		ck_assert_int_eq(put_expecting(sizes[i], &checksum, &err), -1);
		ck_assert_int_eq(err.kind, ERROR_BAD_DIGEST);
		ck_assert_int_eq(fixture_find(&fixture, "weights", "expected", &object, &err), -1);
		free(bytes);
	}
}
END_TEST

static void md5_of(struct span bytes, uint8_t out[MD5_BYTES])
{
	struct md5_stream *const stream = md5_stream_new();
	md5_stream_add(stream, bytes);
	md5_stream_result(stream, out);
	md5_stream_free(stream);
}

START_TEST(fast_etags_are_no_md5_and_equal_for_equal_bytes)
{
	struct error err = {0};
	char first[OBJECT_ETAG_BYTES];
	char second[OBJECT_ETAG_BYTES];
	uint8_t *const bytes = fixture_noise(700000, 2);
	ck_assert_int_eq(fixture_run(fixture.store, "UPDATE buckets SET etag_policy = 2", &err), 0);
	for (size_t len = 0; len <= 700000; len += 350000) {
		struct object_put_params params = {
			.bucket = bucket_named(span_text("weights")), .key = span_text("a")};
		ck_assert_int_eq(
			fixture_put_with(fixture.store, &params, span_of(bytes, len), first, &err),
			0);
		md5_of(span_of(bytes, len), params.content_md5);
		params.has_content_md5 = true; /* the MD5 is checked, but it is not the ETag */
		params.key = span_text("b");
		ck_assert_int_eq(
			fixture_put_with(fixture.store, &params, span_of(bytes, len), second, &err),
			0);
		ck_assert_str_eq(first, second);
		ck_assert_uint_eq(strlen(first), 34);
		ck_assert_str_eq(first + 32, "-1");
		ck_assert(fixture_holds(&fixture, "weights", "a", span_of(bytes, len)));
		params.content_md5[0] ^= 1;
		ck_assert_int_eq(
			fixture_put_with(fixture.store, &params, span_of(bytes, len), NULL, &err),
			-1);
		ck_assert_int_eq(err.kind, ERROR_BAD_DIGEST);
		bytes[0]++;
		params = (struct object_put_params){
			.bucket = bucket_named(span_text("weights")), .key = span_text("a")};
		ck_assert_int_eq(
			fixture_put_with(fixture.store, &params, span_of(bytes, len), second, &err),
			0);
		ck_assert_int_eq(strcmp(first, second) == 0, len == 0);
	}
	ck_assert_int_eq(fixture_run(fixture.store, "UPDATE buckets SET etag_policy = 1", &err), 0);
	struct object_put_params params = {
		.bucket = bucket_named(span_text("weights")), .key = span_text("a")};
	ck_assert_int_eq(fixture_put_with(fixture.store, &params, span_text("b"), first, &err), 0);
	ck_assert_str_eq(first, "92eb5ffee6ae2fec3ad71c777531578f");
	free(bytes);
}
END_TEST

START_TEST(versions_are_named_by_clients)
{
	struct version_ref ref;
	ck_assert(version_ref_parse(span_text("null"), &ref) && ref.kind == VERSION_REF_NULL);
	ck_assert(version_ref_parse(span_text("00112233445566778899aabbccddeeff"), &ref) &&
		ref.kind == VERSION_REF_ID);
	ck_assert_int_eq(ref.id[15], 0xFF);
	ck_assert(!version_ref_parse(span_text(""), &ref));
	ck_assert(!version_ref_parse(span_text("Null"), &ref));
}
END_TEST

START_TEST(ids_of_other_servers_are_ids)
{
	static const struct {
		const char *text;
		bool is_id;
	} rows[] = {{"00112233445566778899aabbccddeefg", true},
		{"3/L4kqtJlcpXroDTDmJ+rmSpXd3dIbrHY", false}, {"3HL4kqtJvjVBH40Nrjfkd-._~", true},
		{"3f2504e0-4f89-41d3-9a0c-0305e82c3301", true}, {"0123456789012345678", false},
		{"01234567890123456789", true},
		{"0123456789012345678901234567890123456789012345678901234567890123", true},
		{"01234567890123456789012345678901234567890123456789012345678901234", false},
		{"0123456789 0123456789", false}};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct version_ref ref;
		ck_assert_msg(version_ref_parse(span_text(rows[i].text), &ref) == rows[i].is_id,
			"%s", rows[i].text);
		ck_assert_int_eq(ref.kind, VERSION_REF_FOREIGN);
	}
}
END_TEST

static struct object_put *open_put(const char *key, struct error *err)
{
	const struct object_put_params params = {
		.bucket = bucket_named(span_text("weights")), .key = span_text(key)};
	return object_put_open(fixture.store, &params, err);
}

START_TEST(keys_of_the_server_are_refused)
{
	struct error err = {0};
	struct object_put *const put = open_put("run/anchors/step_000005/model", &err);
	ck_assert_ptr_nonnull(put);
	ck_assert_int_eq(fixture_open_run(fixture.store, "weights", "run", NULL, &err), 0);
	ck_assert_int_eq(object_put_write(put, span_text("bytes"), &err), SINK_TAKEN);
	ck_assert_int_eq(fixture_call(object_put_call(put), &err), -1);
	ck_assert_int_eq(err.kind, ERROR_DENIED);
	ck_assert_ptr_null(open_put("run/anchors/step_000006/model", &err));
	ck_assert_int_eq(err.kind, ERROR_DENIED);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM versions"), 0);
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

START_TEST(etags_are_what_the_bucket_or_else_the_server_says)
{
	struct error err = {0};
	struct object_put_params params = {
		.bucket = bucket_named(span_text("weights")), .key = span_text("k")};
	char etag[OBJECT_ETAG_BYTES];
	const struct bucket_edit edit = {
		.sets_etag_policy = true, .etag_policy = policies[_i].bucket};
	const struct store_options options = {.folder = fixture.folder,
		.clock = &fixture.clock.source,
		.fast_etags = policies[_i].server_is_fast};
	store_fixture_stop(&fixture);
	fixture.store = store_open(&options, &err);
	ck_assert_msg(fixture.store != NULL, "%s", err.text);
	fixture_await_start(fixture.store);
	ck_assert_int_eq(fixture_edit_bucket(fixture.store, "weights", &edit, &err), 0);
	ck_assert_int_eq(
		fixture_put_with(fixture.store, &params, span_text("bytes"), etag, &err), 0);
	ck_assert_int_eq(
		strcmp(etag, "4b3a6218bb3e3a7303e8a171a60fcf92") != 0, policies[_i].is_fast);
}
END_TEST

Suite *test_object_put_suite(void);
Suite *test_object_put_suite(void)
{
	Suite *const suite = suite_create("object_put");
	TCase *const tests = tcase_create("object_put");
	tcase_set_timeout(tests, 120);
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, racing_conditional_puts_lose_no_update);
	tcase_add_test(tests, what_is_said_of_an_object_comes_back);
	tcase_add_loop_test(tests, a_body_with_another_checksum_is_refused, CHECKSUM_CRC32,
		CHECKSUM_ALGORITHMS);
	tcase_add_test(tests, fast_etags_are_no_md5_and_equal_for_equal_bytes);
	tcase_add_test(tests, versions_are_named_by_clients);
	tcase_add_test(tests, ids_of_other_servers_are_ids);
	tcase_add_test(tests, keys_of_the_server_are_refused);
	tcase_add_loop_test(tests, etags_are_what_the_bucket_or_else_the_server_says, 0,
		sizeof(policies) / sizeof(policies[0]));
	suite_add_tcase(suite, tests);
	return suite;
}
