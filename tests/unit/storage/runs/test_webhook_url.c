/* Which URLs the operator's list of hosts allows the server to call. */
#include "storage/runs/webhook_url.h"

#include "tests/unit/unit.h"

static const struct {
	const char *pattern;
	const char *url;
	bool allowed;
} cases[] = {
	{"hooks.example", "https://hooks.example/x", true},
	{"hooks.example", "http://HOOKS.example", true},
	{"hooks.example", "https://hooks.example:8443/x", true},
	{"hooks.example", "https://evilhooks.example/x", false},
	{"hooks.example", "https://a.hooks.example/x", false},
	{"hooks.example", "https://hooks.example.evil/x", false},
	{"hooks.example", "https://hooks.exampl/x", false},
	{"hooks.example", "https://evil/hooks.example", false},
	{"hooks.example", "https://evil:443/?hooks.example", false},
	{"hooks.example:8443", "https://hooks.example:8443/x", true},
	{"hooks.example:8443", "https://hooks.example/x", false},
	{"hooks.example:8443", "https://hooks.example:844/x", false},
	{".hooks.example", "https://a.hooks.example/x", true},
	{".hooks.example", "https://a.b.Hooks.Example:1/x", true},
	{".hooks.example", "https://hooks.example/x", false},
	{".hooks.example", "https://evilhooks.example/x", false},
	{".hooks.example", "https://a.hooks.example.evil/x", false},
	{"10.0.0.1", "http://10.0.0.1:80/x", true},
	{"10.0.0.1", "http://110.0.0.1/x", false},
	{"10.0.0.1", "http://10.0.0.11/x", false},
	{"[::1]", "http://[::1]:80/x", true},
	{"[::1]", "http://[::1]/x", true},
	{"[::1]", "http://[::11]/x", false},
	{"*", "http://anything/x", true},
	{"*.example", "http://a.example/x", false},
	{"", "http://a.example/x", false},
};

START_TEST(a_pattern_lets_its_own_hosts_in)
{
	struct error err = {0};
	struct webhook_url url;
	ck_assert_msg(webhook_url_parse(span_text(cases[_i].url), &url, &err) == 0, "%s", err.text);
	ck_assert_msg(webhook_url_allowed(&url, &cases[_i].pattern, 1) == cases[_i].allowed,
		"%s with the pattern %s", cases[_i].url, cases[_i].pattern);
}
END_TEST

START_TEST(any_pattern_of_the_list_is_enough_and_none_lets_nobody_in)
{
	static const char *const patterns[] = {"a.example", "b.example"};
	struct error err = {0};
	struct webhook_url url;
	ck_assert_int_eq(webhook_url_parse(span_text("https://b.example/x"), &url, &err), 0);
	ck_assert(webhook_url_allowed(&url, patterns, 2));
	ck_assert(!webhook_url_allowed(&url, patterns, 1));
	ck_assert(!webhook_url_allowed(&url, patterns, 0));
}
END_TEST

static const char *const refused[] = {
	"",
	"hooks.example/x",
	"ftp://hooks.example/x",
	"https://",
	"https:///x",
	"https://:443/x",
	"https://user@hooks.example/x",
	"https://hooks.example@evil/x",
	"https://hooks.example?x",
	"https://hooks.example/a b",
	"https://hooks.example/#x",
	"https://evil\\hooks.example/x",
	"https://hooks.example/\n",
	"https://hooks.example/\x7f",
	"https://hooks.example/\xc3\xa4",
	" https://hooks.example/x",
};

START_TEST(what_is_not_a_plain_url_is_refused)
{
	struct error err = {0};
	struct webhook_url url;
	ck_assert_int_eq(webhook_url_parse(span_text(refused[_i]), &url, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_INVALID);
}
END_TEST

START_TEST(a_url_is_taken_apart)
{
	struct error err = {0};
	struct webhook_url url;
	ck_assert_int_eq(webhook_url_parse(span_text("http://h:1/a?b=c"), &url, &err), 0);
	ck_assert(span_equal_text(url.endpoint, "http://h:1"));
	ck_assert(span_equal_text(url.authority, "h:1"));
	ck_assert(span_equal_text(url.target, "/a?b=c"));
	ck_assert_int_eq(webhook_url_parse(span_text("https://h"), &url, &err), 0);
	ck_assert(span_equal_text(url.authority, "h") && url.target.len == 0);
}
END_TEST

Suite *test_webhook_url_suite(void);

Suite *test_webhook_url_suite(void)
{
	Suite *const suite = suite_create("webhook_url");
	TCase *const tests = tcase_create("webhook_url");
	tcase_add_loop_test(
		tests, a_pattern_lets_its_own_hosts_in, 0, sizeof cases / sizeof cases[0]);
	tcase_add_test(tests, any_pattern_of_the_list_is_enough_and_none_lets_nobody_in);
	tcase_add_loop_test(
		tests, what_is_not_a_plain_url_is_refused, 0, sizeof refused / sizeof refused[0]);
	tcase_add_test(tests, a_url_is_taken_apart);
	suite_add_tcase(suite, tests);
	return suite;
}
