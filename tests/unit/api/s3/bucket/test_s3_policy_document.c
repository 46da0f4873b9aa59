#include "api/s3/bucket/policy_document.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/unit.h"

#define STATEMENT(principal, action, resource)                                 \
	"{\"Effect\":\"Allow\",\"Principal\":" principal ",\"Action\":" action \
	",\"Resource\":" resource "}"
#define POLICY(statements)               "{\"Version\":\"2012-10-17\",\"Statement\":[" statements "]}"
#define ONE(principal, action, resource) POLICY(STATEMENT(principal, action, resource))
#define BUCKET                           "\"arn:aws:s3:::bkt\""
#define KEYS                             "\"arn:aws:s3:::bkt/*\""

/* Each grant as ACCOUNT:PREFIX=bits, with '*' for everyone; "400" or "501" for refused policies. */
static const struct {
	const char *json;
	const char *grants;
} policies[] = {
	{ONE("\"*\"", "\"s3:GetObject\"", KEYS), "*:=1 "},
	{ONE("{\"AWS\":\"*\"}", "[\"s3:GetObject\"]", "\"arn:aws:s3:::bkt/a/b*\""), "*:a/b=1 "},
	{ONE("{\"AWS\":\"arn:aws:iam::team:root\"}", "\"s3:ListBucket\"", BUCKET), "team:=4 "},
	{ONE("{\"AWS\":[\"team\",\"lab\"]}", "\"s3:PutObject\"", KEYS), "team:=2 lab:=2 "},
	{ONE("{\"CanonicalUser\":\"team\"}", "\"s3:DeleteObject\"", KEYS), "team:=16 "},
	{ONE("\"*\"", "[\"s3:GetObject\",\"s3:ListBucket\"]", "[" BUCKET "," KEYS "]"),
		"*:=4 *:=1 "},
	{ONE("\"*\"", "\"s3:ListBucket\"", "[" BUCKET "," KEYS "]"), "*:=4 "},
	{ONE("\"*\"", "\"S3:getobject\"", KEYS), "*:=1 "},
	{ONE("\"*\"", "\"s3:Get*\"", KEYS), "*:=33 "},
	{ONE("\"*\"", "\"s3:GetObjectVersion\"", KEYS), "*:=33 "},
	/* Reading old versions and writing new ones stay two grants. */
	{ONE("\"*\"", "[\"s3:GetObjectVersion\",\"s3:PutObject\"]", KEYS), "*:=33 *:=2 "},
	{ONE("\"team\"", "\"s3:GetObject\"", KEYS), "400"},
	{ONE("{\"AWS\":\"team\"}", "\"s3:*\"", KEYS), "team:=49 team:=19 "},
	{ONE("{\"AWS\":\"team\"}", "\"*\"", "\"*\""), "team:=49 team:=19 team:=36 "},
	{ONE("{\"AWS\":\"team\"}", "[\"s3:GetBucketLocation\",\"s3:ListBucket\"]", BUCKET),
		"team:=4 "},
	{POLICY(STATEMENT("\"*\"", "\"s3:GetObject\"", KEYS) "," STATEMENT(
		 "{\"AWS\":\"lab\"}", "\"s3:PutObject\"", KEYS)),
		"*:=1 lab:=2 "},
	{"{\"Statement\":" STATEMENT("\"*\"", "\"s3:GetObject\"", KEYS) "}", "*:=1 "},
	/* These are not policies of this bucket, or not policies at all. */
	{"", "400"},
	{"[]", "400"},
	{"{}", "400"},
	{"{\"Statement\":[]}", "400"},
	{"{\"Statement\":[1]}", "400"},
	{"{\"Version\":\"2024-01-01\",\"Statement\":" STATEMENT(
		 "\"*\"", "\"s3:GetObject\"", KEYS) "}",
		"400"},
	{"{\"Other\":1,\"Statement\":" STATEMENT("\"*\"", "\"s3:GetObject\"", KEYS) "}", "400"},
	{ONE("\"*\"", "\"s3:GetObject\"", "\"arn:aws:s3:::other/*\""), "400"},
	{ONE("\"*\"", "\"s3:GetObject\"", "\"arn:aws:s3:::bkt2/*\""), "400"},
	{ONE("\"*\"", "\"s3:GetObject\"", "\"arn:aws:s3:::bkt*\""), "400"},
	{ONE("\"*\"", "\"s3:GetObject\"", "\"bkt/*\""), "400"},
	{ONE("\"*\"", "\"s3:GetObject\"", BUCKET), "400"},
	{ONE("\"*\"", "\"s3:ListBucket\"", KEYS), "400"},
	{ONE("\"*\"", "\"GetObject\"", KEYS), "400"},
	{ONE("\"*\"", "1", KEYS), "400"},
	{ONE("\"*\"", "[]", KEYS), "400"},
	{ONE("\"*\"", "\"s3:GetObject\"", "[]"), "400"},
	{ONE("{}", "\"s3:GetObject\"", KEYS), "400"},
	{ONE("{\"AWS\":[]}", "\"s3:GetObject\"", KEYS), "400"},
	{ONE("{\"AWS\":\"a b:c\"}", "\"s3:GetObject\"", KEYS), "400"},
	{"{\"Statement\":{\"Effect\":\"Maybe\",\"Principal\":\"*\",\"Action\":\"s3:GetObject\",\"Resource\":" KEYS
	 "}}",
		"400"},
	{"{\"Statement\":{\"Principal\":\"*\",\"Action\":\"s3:GetObject\",\"Resource\":" KEYS "}}",
		"400"},
	{"{\"Statement\":{\"Effect\":\"Allow\",\"Action\":\"s3:GetObject\",\"Resource\":" KEYS "}}",
		"400"},
	{"{\"Statement\":{\"Effect\":\"Allow\",\"Effect\":\"Allow\",\"Principal\":\"*\",\"Action\":\"s3:GetObject\",\"Resource\":" KEYS
	 "}}",
		"400"},
	/* Grants cannot express these policies. */
	{"{\"Statement\":{\"Effect\":\"Deny\",\"Principal\":\"*\",\"Action\":\"s3:GetObject\",\"Resource\":" KEYS
	 "}}",
		"501"},
	{"{\"Statement\":{\"Effect\":\"Allow\",\"Principal\":\"*\",\"NotAction\":\"s3:GetObject\",\"Resource\":" KEYS
	 "}}",
		"501"},
	{"{\"Statement\":{\"Effect\":\"Allow\",\"NotPrincipal\":\"*\",\"Action\":\"s3:GetObject\",\"Resource\":" KEYS
	 "}}",
		"501"},
	{"{\"Statement\":{\"Effect\":\"Allow\",\"Principal\":\"*\",\"Action\":\"s3:GetObject\",\"Resource\":" KEYS
	 ",\"Condition\":{}}}",
		"501"},
	{ONE("{\"Service\":\"logging.s3.amazonaws.com\"}", "\"s3:PutObject\"", KEYS), "501"},
	{ONE("{\"AWS\":\"arn:aws:iam::team:user/one\"}", "\"s3:GetObject\"", KEYS), "501"},
	{ONE("\"*\"", "\"s3:GetObjectAcl\"", KEYS), "501"},
	{ONE("\"*\"", "\"s3:PutBucketPolicy\"", BUCKET), "501"},
	{ONE("\"*\"", "\"s3:AbortMultipartUpload\"", KEYS), "501"},
	{ONE("\"*\"", "\"s3:G*t\"", KEYS), "501"},
	{ONE("\"*\"", "\"s3:GetObject\"", "\"arn:aws:s3:::bkt/key\""), "501"},
	{ONE("\"*\"", "\"s3:GetObject\"", "\"arn:aws:s3:::bkt/*.txt\""), "501"},
	{ONE("\"*\"", "\"s3:GetObject\"", "\"arn:aws:s3:::bkt/a?*\""), "501"},
	{ONE("\"*\"", "\"s3:GetObject\"", "\"arn:aws:s3:::bkt/${aws:username}/*\""), "501"},
};

static void print(const struct bucket_grant *grants, size_t count, struct buffer *out)
{
	for (size_t i = 0; i < count; i++)
		buffer_format(out, "%.*s:%.*s=%u ",
			grants[i].account.len == 0 ? 1 : (int)grants[i].account.len,
			grants[i].account.len == 0 ? "*" : (const char *)grants[i].account.data,
			(int)grants[i].prefix.len, (const char *)grants[i].prefix.data,
			grants[i].permissions);
}

START_TEST(test_policies)
{
	struct arena *const arena = arena_new(1024 * 1024);
	struct bucket_grant *grants;
	struct buffer printed;
	struct error err = {0};
	size_t count;
	buffer_init(&printed, 64 * 1024);
	if (policy_document_parse(span_text(policies[_i].json), span_text("bkt"), arena, &grants,
		    &count, &err) == 0)
		print(grants, count, &printed);
	else
		buffer_add_text(&printed,
			err.kind == ERROR_INVALID               ? "400"
				: err.kind == ERROR_UNSUPPORTED ? "501"
								: "other");
	ck_assert_msg(strcmp(buffer_text(&printed), policies[_i].grants) == 0, "%s: %s (%s)",
		policies[_i].json, buffer_text(&printed), err.text);
	buffer_release(&printed);
	arena_free(arena);
}
END_TEST

START_TEST(test_sizes)
{
	struct arena *const arena = arena_new(1024 * 1024);
	struct bucket_grant *grants;
	struct error err = {0};
	struct buffer json;
	size_t count;
	buffer_init(&json, 64 * 1024);
	buffer_add_text(&json,
		"{\"Statement\":{\"Effect\":\"Allow\",\"Principal\":\"*\",\"Action\":\"s3:GetObject\",\"Resource\":[");
	for (unsigned i = 0; i <= BUCKET_GRANTS_MAX; i++)
		buffer_format(&json, "%s\"arn:aws:s3:::bkt/%u/*\"", i > 0 ? "," : "", i);
	buffer_add_text(&json, "]}}");
	ck_assert_int_eq(policy_document_parse(buffer_span(&json), span_text("bkt"), arena, &grants,
				 &count, &err),
		-1);
	ck_assert_int_eq(err.kind, ERROR_TOO_LARGE);
	for (unsigned i = 0; i < POLICY_DOCUMENT_MAX_BYTES; i++)
		buffer_add_byte(&json, ' ');
	ck_assert_int_eq(policy_document_parse(buffer_span(&json), span_text("bkt"), arena, &grants,
				 &count, &err),
		-1);
	ck_assert_int_eq(err.kind, ERROR_INVALID);
	buffer_release(&json);
	arena_free(arena);
}
END_TEST

Suite *test_s3_policy_document_suite(void);
Suite *test_s3_policy_document_suite(void)
{
	Suite *const suite = suite_create("s3_policy_document");
	TCase *const policy = tcase_create("policy");
	tcase_add_loop_test(policy, test_policies, 0, sizeof(policies) / sizeof(policies[0]));
	tcase_add_test(policy, test_sizes);
	suite_add_tcase(suite, policy);
	return suite;
}
