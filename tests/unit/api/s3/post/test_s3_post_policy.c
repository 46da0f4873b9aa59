#include "tests/unit/unit.h"

#include "api/s3/post/post_policy.h"
#include "base/encode.h"

#define IN_TIME "\"expiration\": \"2026-02-02T02:40:00.000Z\""
#define BUCKET  "{\"bucket\": \"bkt\"}"
#define ALL     BUCKET ", [\"starts-with\", \"$key\", \"a/\"], {\"acl\": \"private\"}"

static const int64_t now_ms = INT64_C(1770000000000); /* 2026-02-02T02:40:00Z */

struct desk {
	struct arena *arena;
	struct post_form form;
};

static void open_desk(struct desk *desk)
{
	static const char *const fields[][2] = {{"Key", "a/b"}, {"acl", "private"}, {"policy", "p"},
		{"X-Amz-Signature", "s"}, {"x-ignore-me", "1"}};
	struct error err = {0};
	desk->arena = arena_new(1 << 20);
	desk->form.count = 0;
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		ck_assert_int_eq(post_form_add(&desk->form, desk->arena, span_text(fields[i][0]),
					 span_text(fields[i][1]), &err),
			0);
}

static int check(struct desk *desk, const char *json, struct post_policy *policy, struct error *err)
{
	struct buffer text;
	buffer_init(&text, 100000);
	encode_base64(span_text(json), &text);
	const int outcome = post_policy_check(
		buffer_span(&text), &desk->form, span_text("bkt"), now_ms, policy, err);
	buffer_release(&text);
	return outcome;
}

static const struct {
	const char *json;
	enum error_kind error;
} policies[] = {
	{"{" IN_TIME ", \"conditions\": [" ALL "]}", ERROR_NONE},
	{"{" IN_TIME
	 ", \"conditions\": [{\"bUcKeT\": \"bkt\"}, [\"StArTs-WiTh\", \"$kEy\", \"\"], [\"EQ\", \"$ACL\", \"private\"]]}",
		ERROR_NONE},
	{"{" IN_TIME
	 ", \"conditions\": [{\"bucket\": \"bkt\", \"key\": \"a/b\", \"acl\": \"private\"}]}",
		ERROR_NONE},
	{"{" IN_TIME ", \"conditions\": [" ALL ", [\"starts-with\", \"$absent\", \"\"]]}",
		ERROR_NONE},
	{"{" IN_TIME ", \"conditions\": [" ALL ", [\"content-length-range\", 1, 10]]}", ERROR_NONE},

	{"{\"expiration\": \"2026-02-02T02:39:59.999Z\", \"conditions\": [" ALL "]}", ERROR_DENIED},
	{"{" IN_TIME
	 ", \"conditions\": [{\"bucket\": \"other\"}, [\"starts-with\", \"$key\", \"\"], {\"acl\": \"private\"}]}",
		ERROR_DENIED},
	{"{" IN_TIME
	 ", \"conditions\": [[\"starts-with\", \"$key\", \"\"], {\"acl\": \"private\"}]}",
		ERROR_DENIED},
	{"{" IN_TIME ", \"conditions\": [" BUCKET ", {\"acl\": \"private\"}]}", ERROR_DENIED},
	{"{" IN_TIME ", \"conditions\": [" BUCKET
	 ", [\"starts-with\", \"$key\", \"b\"], {\"acl\": \"private\"}]}",
		ERROR_DENIED},
	{"{" IN_TIME ", \"conditions\": [" BUCKET
	 ", [\"starts-with\", \"$key\", \"A/\"], {\"acl\": \"private\"}]}",
		ERROR_DENIED},
	{"{" IN_TIME ", \"conditions\": [" ALL ", {\"absent\": \"\"}]}", ERROR_DENIED},
	{"{" IN_TIME ", \"conditions\": [" ALL ", [\"starts-with\", \"$absent\", \"x\"]]}",
		ERROR_DENIED},

	{"", ERROR_INVALID},
	{"[]", ERROR_INVALID},
	{"{" IN_TIME ", \"conditions\": [" ALL "]", ERROR_INVALID},
	{"{" IN_TIME "}", ERROR_INVALID},
	{"{" IN_TIME ", \"conditions\": []}", ERROR_INVALID},
	{"{" IN_TIME ", \"conditions\": [{}]}", ERROR_INVALID},
	{"{" IN_TIME ", \"conditions\": {}}", ERROR_INVALID},
	{"{" IN_TIME ", \"CONDITIONS\": [" ALL "]}", ERROR_INVALID},
	{"{\"conditions\": [" ALL "]}", ERROR_INVALID},
	{"{\"EXPIRATION\": \"2026-02-02T02:40:00.000Z\", \"conditions\": [" ALL "]}",
		ERROR_INVALID},
	{"{\"expiration\": \"2026-02-02 02:40:00+00:00\", \"conditions\": [" ALL "]}",
		ERROR_INVALID},
	{"{\"expiration\": \"Mon, 02 Feb 2026 02:40:00 GMT\", \"conditions\": [" ALL "]}",
		ERROR_INVALID},
	{"{\"expiration\": 1770000000, \"conditions\": [" ALL "]}", ERROR_INVALID},
	{"{" IN_TIME ", \"conditions\": [" ALL ", [\"ends-with\", \"$key\", \"b\"]]}",
		ERROR_INVALID},
	{"{" IN_TIME ", \"conditions\": [" ALL ", [\"eq\", \"key\", \"a/b\"]]}", ERROR_INVALID},
	{"{" IN_TIME ", \"conditions\": [" ALL ", [\"eq\", \"$key\"]]}", ERROR_INVALID},
	{"{" IN_TIME ", \"conditions\": [" ALL ", [\"content-length-range\", 0]]}", ERROR_INVALID},
	{"{" IN_TIME ", \"conditions\": [" ALL ", [\"content-length-range\", -1, 0]]}",
		ERROR_INVALID},
	{"{" IN_TIME ", \"conditions\": [" ALL ", [\"content-length-range\", 2, 1]]}",
		ERROR_INVALID},
	{"{" IN_TIME ", \"conditions\": [" ALL ", \"text\"]}", ERROR_INVALID},
	{"{" IN_TIME ", \"conditions\": [" ALL ", {\"status\": 200}]}", ERROR_INVALID},
};

START_TEST(a_policy_is_good_or_refused)
{
	struct desk desk;
	struct post_policy policy;
	struct error err = {0};
	open_desk(&desk);
	const int outcome = check(&desk, policies[_i].json, &policy, &err);
	ck_assert_msg(err.kind == policies[_i].error && (outcome == 0) == (err.kind == ERROR_NONE),
		"%s: %s %s", policies[_i].json, error_kind_name(err.kind), err.text);
	arena_free(desk.arena);
}
END_TEST

START_TEST(ranges_narrow_each_other)
{
	struct desk desk;
	struct post_policy policy;
	struct error err = {0};
	open_desk(&desk);
	ck_assert_int_eq(
		check(&desk, "{" IN_TIME ", \"conditions\": [" ALL "]}", &policy, &err), 0);
	ck_assert(policy.least_bytes == 0 && policy.most_bytes == UINT64_MAX);
	ck_assert_int_eq(
		check(&desk,
			"{" IN_TIME ", \"conditions\": [" ALL
			", [\"content-length-range\", 5, \"100\"], [\"Content-Length-Range\", 1, 50]]}",
			&policy, &err),
		0);
	ck_assert(policy.least_bytes == 5 && policy.most_bytes == 50);
	arena_free(desk.arena);
}
END_TEST

START_TEST(text_that_is_no_base64)
{
	static const char *const texts[] = {"", "%%%", "{}", "e30"};
	struct desk desk;
	open_desk(&desk);
	for (size_t i = 0; i < 4; i++) {
		struct post_policy policy;
		struct error err = {0};
		ck_assert_int_eq(post_policy_check(span_text(texts[i]), &desk.form,
					 span_text("bkt"), now_ms, &policy, &err),
			-1);
		ck_assert_int_eq(err.kind, ERROR_INVALID);
	}
	arena_free(desk.arena);
}
END_TEST

START_TEST(the_bucket_may_be_a_field_too)
{
	static const struct {
		const char *value;
		enum error_kind error;
	} fields[] = {{"bkt", ERROR_NONE}, {"other", ERROR_DENIED}};
	for (size_t i = 0; i < 2; i++) {
		struct desk desk;
		struct post_policy policy;
		struct error err = {0};
		open_desk(&desk);
		ck_assert_int_eq(post_form_add(&desk.form, desk.arena, span_text("bucket"),
					 span_text(fields[i].value), &err),
			0);
		check(&desk, "{" IN_TIME ", \"conditions\": [" ALL "]}", &policy, &err);
		ck_assert_int_eq(err.kind, fields[i].error);
		arena_free(desk.arena);
	}
}
END_TEST

START_TEST(a_field_comes_once)
{
	struct desk desk;
	struct error err = {0};
	open_desk(&desk);
	ck_assert_int_eq(
		post_form_add(&desk.form, desk.arena, span_text("KEY"), span_text("c"), &err), -1);
	ck_assert_int_eq(err.kind, ERROR_INVALID);
	arena_free(desk.arena);
}
END_TEST

Suite *test_s3_post_policy_suite(void);

Suite *test_s3_post_policy_suite(void)
{
	Suite *const suite = suite_create("s3_post_policy");
	TCase *const tcase = tcase_create("s3_post_policy");
	tcase_add_loop_test(
		tcase, a_policy_is_good_or_refused, 0, sizeof(policies) / sizeof(policies[0]));
	tcase_add_test(tcase, ranges_narrow_each_other);
	tcase_add_test(tcase, text_that_is_no_base64);
	tcase_add_test(tcase, the_bucket_may_be_a_field_too);
	tcase_add_test(tcase, a_field_comes_once);
	suite_add_tcase(suite, tcase);
	return suite;
}
