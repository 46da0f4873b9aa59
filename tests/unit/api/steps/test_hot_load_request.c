#include "tests/unit/unit.h"

#include <string.h>

#include "api/steps/hot_load_request.h"

static struct arena *arena;
static struct hot_load_request request;
static struct error err;

static void set_up(void)
{
	arena = arena_new(64 * 1024);
	err = (struct error){0};
}

static void tear_down(void)
{
	arena_free(arena);
}

START_TEST(full_and_incremental_snapshots)
{
	ck_assert_int_eq(
		hot_load_request_parse(
			span_text("{\"identity\":\"s-1\",\"reset_prompt_cache\":true,\"new\":{}}"),
			arena, &request, &err),
		0);
	ck_assert(span_equal_text(request.identity, "s-1") && !request.is_incremental);
	static const char *const formats[] = {"", ",\"compression_format\":\"zstd\"",
		",\"checksum_format\":\"alder32\"",
		",\"compression_format\":null,\"checksum_format\":\"xxh3-128\"",
		",\"compression_format\":\"zstd\",\"checksum_format\":\"adler32\""};
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		const char *const text = arena_format(arena,
			"{\"identity\":\"s-2\",\"incremental_snapshot_metadata\":{\"previous_snapshot_identity\":\"s-1\"%s}}",
			formats[i]);
		ck_assert_msg(hot_load_request_parse(span_text(text), arena, &request, &err) == 0,
			"%s: %s", text, err.text);
		ck_assert(request.is_incremental && span_equal_text(request.previous, "s-1"));
	}
}
END_TEST

static const struct {
	const char *text;
	enum error_kind kind;
} bad_requests[] = {
	{"", ERROR_INVALID},
	{"[]", ERROR_INVALID},
	{"{}", ERROR_INVALID},
	{"{\"identity\":7}", ERROR_INVALID},
	{"{\"identity\":\"a\",\"incremental_snapshot_metadata\":\"b\"}", ERROR_INVALID},
	{"{\"identity\":\"a\",\"incremental_snapshot_metadata\":{}}", ERROR_INVALID},
	{"{\"identity\":\"a\",\"incremental_snapshot_metadata\":{\"previous_snapshot_identity\":\"\"}}",
		ERROR_INVALID},
	{"{\"identity\":\"a\",\"incremental_snapshot_metadata\":{\"previous_snapshot_identity\":\"b\",\"compression_format\":\"arc_v2\"}}",
		ERROR_SNAPSHOT_FORMAT},
	{"{\"identity\":\"a\",\"incremental_snapshot_metadata\":{\"previous_snapshot_identity\":\"b\",\"checksum_format\":\"md5\"}}",
		ERROR_SNAPSHOT_FORMAT},
	{"{\"identity\":\"a\",\"incremental_snapshot_metadata\":{\"previous_snapshot_identity\":\"b\",\"checksum_format\":1}}",
		ERROR_INVALID},
};

START_TEST(bad_requests_are_refused)
{
	ck_assert_int_eq(
		hot_load_request_parse(span_text(bad_requests[_i].text), arena, &request, &err),
		-1);
	ck_assert_int_eq(err.kind, bad_requests[_i].kind);
}
END_TEST

Suite *test_hot_load_request_suite(void);
Suite *test_hot_load_request_suite(void)
{
	Suite *const suite = suite_create("hot_load_request");
	TCase *const tests = tcase_create("all");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, full_and_incremental_snapshots);
	tcase_add_loop_test(
		tests, bad_requests_are_refused, 0, sizeof(bad_requests) / sizeof(bad_requests[0]));
	suite_add_tcase(suite, tests);
	return suite;
}
