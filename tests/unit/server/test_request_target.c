#include "tests/unit/unit.h"

#include "server/request_target.h"

static const struct {
	const char *sent;
	const char *authority;
	const char *path;
	const char *query;
	bool is_good;
} targets[] = {
	{"/", "", "/", "", true},
	{"/a/b?c=d?e", "", "/a/b", "c=d?e", true},
	{"/http://a/b", "", "/http://a/b", "", true},
	{"*", "", "*", "", false},
	{"", "", "", "", false},
	{"?a", "", "", "a", false},
	{"a/b", "", "a/b", "", false},
	{"ftp://a/b", "", "ftp://a/b", "", false},
	{"http:/a", "", "http:/a", "", false},
	{"http://a/b", "a", "/b", "", true},
	{"HTTPS://a.b-c_D:99/b/http://x?y", "a.b-c_D:99", "/b/http://x", "y", true},
	{"http://[::1]:80", "[::1]:80", "/", "", true},
	{"http://a?b/c", "a", "/", "b/c", true},
	{"http://a?", "a", "/", "", true},
	{"http://", "", "/", "", false},
	{"http:///a", "", "/a", "", false},
	{"http://:80/a", ":80", "/a", "", false},
	{"http://u:p@a/b", "u:p@a", "/b", "", false},
	{"http://a%2fb/c", "a%2fb", "/c", "", false},
	{"http://a#b/c", "a#b", "/c", "", false},
	{"http://\xc3\xa4/c", "\xc3\xa4", "/c", "", false},
};

START_TEST(targets_come_apart)
{
	const struct request_target target = request_target_parse(span_text(targets[_i].sent));
	ck_assert(span_equal_text(target.authority, targets[_i].authority));
	ck_assert(span_equal_text(target.path, targets[_i].path));
	ck_assert(span_equal_text(target.query, targets[_i].query));
	ck_assert_int_eq(target.fault == NULL, targets[_i].is_good);
}
END_TEST

static const struct {
	const char *a;
	const char *b;
	bool is_same;
} hosts[] = {
	{"a", "a", true},
	{"A.b", "a.B", true},
	{"a:80", "a", true},
	{"a", "a:443", true},
	{"a:9000", "a:9000", true},
	{"a:9000", "a", false},
	{"a:8080", "a:80", false},
	{"a", "b", false},
	{"a", "ab", false},
	{"", "a", false},
	{":80", "", false},
};

START_TEST(the_same_host_in_other_words)
{
	ck_assert_int_eq(
		request_target_is_same_host(span_text(hosts[_i].a), span_text(hosts[_i].b)),
		hosts[_i].is_same);
}
END_TEST

Suite *test_request_target_suite(void);

Suite *test_request_target_suite(void)
{
	Suite *const suite = suite_create("request_target");
	TCase *const tcase = tcase_create("request_target");
	tcase_add_loop_test(tcase, targets_come_apart, 0, sizeof targets / sizeof targets[0]);
	tcase_add_loop_test(tcase, the_same_host_in_other_words, 0, sizeof hosts / sizeof hosts[0]);
	suite_add_tcase(suite, tcase);
	return suite;
}
