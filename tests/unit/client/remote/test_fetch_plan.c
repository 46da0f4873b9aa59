#include "tests/unit/unit.h"

#include <string.h>

#include "client/remote/fetch_plan.h"

#define X1 "0000000000000001000000000000000000000000000000000000000000000000"
#define TERMS(range) \
	"\"terms\":[{\"hash\":\"" X1 "\",\"unpacked_length\":8192,\"range\":" range "}]"
#define ENTRY(url, chunks, bytes) \
	"{\"url\":\"" url "\",\"ranges\":[{\"chunks\":" chunks ",\"bytes\":" bytes "}]}"

START_TEST(terms_and_fetches_come_as_they_are)
{
	static const char TEXT[] = "{\"offset_into_first_range\":500," TERMS(
		"{\"start\":1,\"end\":5}") ",\"xorbs\":{\"" X1
					   "\":[" ENTRY(
						   "https://host:9000/xet/v1/xorb-data/x?sig=a%2Fb",
						   "{\"start\":1,\"end\":5}",
						   "{\"start\":2056,\"end\":10279}") "]}}";
	struct fetch_plan got;
	struct error err = {0};
	ck_assert_int_eq(fetch_plan_parse(span_text(TEXT), &got, &err), 0);
	ck_assert_uint_eq(got.skip, 500);
	ck_assert_uint_eq(got.term_count, 1);
	ck_assert_uint_eq(got.terms[0].bytes, 8192);
	ck_assert_uint_eq(got.fetch_count, 1);
	ck_assert_uint_eq(got.fetches[0].to, 10279);
	ck_assert_str_eq(got.fetches[0].target, "/xet/v1/xorb-data/x?sig=a%2Fb");
	fetch_plan_release(&got);
}
END_TEST

static const char *const BROKEN[] = {
	"",
	"[]",
	"{}",
	"{\"offset_into_first_range\":0,\"terms\":[],\"xorbs\":[]}",
	/* no fetch covers the term */
	"{\"offset_into_first_range\":0," TERMS("{\"start\":1,\"end\":5}") ",\"xorbs\":{}}",
	"{\"offset_into_first_range\":0," TERMS(
		"{\"start\":1,\"end\":5}") ",\"xorbs\":{\"" X1 "\":[" ENTRY("http://h/x",
		"{\"start\":2,\"end\":5}", "{\"start\":0,\"end\":9}") "]}}",
	/* backwards, and no URL */
	"{\"offset_into_first_range\":0," TERMS("{\"start\":5,\"end\":5}") ",\"xorbs\":{}}",
	"{\"offset_into_first_range\":0,\"terms\":[],\"xorbs\":{\"" X1
	"\":[" ENTRY("http://h/x", "{\"start\":2,\"end\":5}", "{\"start\":9,\"end\":8}") "]}}",
	"{\"offset_into_first_range\":0,\"terms\":[],\"xorbs\":{\"" X1
	"\":[" ENTRY("relative", "{\"start\":2,\"end\":5}", "{\"start\":0,\"end\":8}") "]}}",
	"{\"offset_into_first_range\":0,\"terms\":[],\"xorbs\":{\"short\":[]}}",
	/* more chunks than bytes; more bytes than three records can have */
	"{\"offset_into_first_range\":0," TERMS(
		"{\"start\":1,\"end\":8194}") ",\"xorbs\":{\"" X1 "\":[" ENTRY("http://h/x",
		"{\"start\":1,\"end\":8194}", "{\"start\":0,\"end\":9}") "]}}",
	"{\"offset_into_first_range\":0,\"terms\":[],\"xorbs\":{\"" X1
	"\":[" ENTRY("http://h/x", "{\"start\":2,\"end\":5}", "{\"start\":0,\"end\":999999}") "]}}",
};

START_TEST(a_broken_answer_is_the_servers_fault)
{
	struct fetch_plan got;
	struct error err = {0};
	ck_assert_int_eq(fetch_plan_parse(span_text(BROKEN[_i]), &got, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_UPSTREAM);
}
END_TEST

Suite *test_fetch_plan_suite(void);
Suite *test_fetch_plan_suite(void)
{
	Suite *const suite = suite_create("fetch_plan");
	TCase *const tests = tcase_create("fetch_plan");
	tcase_add_test(tests, terms_and_fetches_come_as_they_are);
	tcase_add_loop_test(
		tests, a_broken_answer_is_the_servers_fault, 0, sizeof BROKEN / sizeof BROKEN[0]);
	suite_add_tcase(suite, tests);
	return suite;
}
