#include "tests/unit/unit.h"

#include <string.h>

#include "server/raw_header.h"

/* A head as libmicrohttpd 0.9.75 leaves it, with NULs for the separators. `lines` follow the
 * request line. `fields` lists the headers as the library would, as places of names and values in
 * `text`. */
struct field {
	size_t name;
	size_t value;
};

static const char *judge(
	const char *text, size_t len, const char *target, const struct field *fields, size_t count)
{
	struct raw_header raw;
	raw_header_begin(&raw, text, span_text(target), len);
	for (size_t i = 0; i < count; i++)
		raw_header_take(
			&raw, span_text(text + fields[i].name), span_text(text + fields[i].value));
	raw_header_end(&raw);
	ck_assert_uint_eq(raw.count, count);
	return raw.fault;
}

#define REQUEST "GET\0/a\0HTTP/1.1\0\0"
static const struct field host[] = {{17, 23}};

static const char *judge_one(const char *text, size_t len)
{
	return judge(text, len, "/a", host, 1);
}

START_TEST(each_header_lies_where_the_line_before_it_ended)
{
	static const char plain[] = REQUEST "Host\0 x\0\0"
					    "\0\0";
	static const char fed[] = "GET\0/a\0HTTP/1.1\0\n"
				  "Host\0 x\0 \r\n"
				  "\r\n";
	ck_assert_ptr_null(judge_one(plain, sizeof plain - 1));
	ck_assert_ptr_null(judge_one(fed, sizeof fed - 1));
}
END_TEST

START_TEST(any_other_layout_breaks_the_walk)
{
	static const struct {
		const char *text;
		size_t len;
	} heads[] = {
#define HEAD(text) {text, sizeof text - 1}
		HEAD(REQUEST "Host\0 x\0\0"),
		HEAD(REQUEST "Host\0 x\0\0"
			     "\0"),
		HEAD(REQUEST "Host\0 x\0\0"
			     "\0\0\0"),
		HEAD(REQUEST "Host\0 x\0"
			     "\0\0"),
		HEAD(REQUEST "Host\0 x\0y\0\0"
			     "\0\0"),
		HEAD(REQUEST "Host\0 x\0 \0\0"
			     "\0\0"),
		HEAD(REQUEST "Host\0 x\0\0"
			     " y\0\0"
			     "\0\0"),
		HEAD(REQUEST "Host\0 x\0\0"
			     "Lost\0 y\0\0"
			     "\0\0"),
		HEAD(REQUEST "Host\0 x\0\0"
			     "\0x\0\0"),
		HEAD("GET\0/b\0HTTP/2.0\0\0"
		     "Host\0 x\0\0"
		     "\0\0"),
		HEAD("GET\0/a\0\0TTP/1.1\0\0"
		     "Host\0 x\0\0"
		     "\0\0"),
		HEAD("GET\0 /\0HTTP/1.1\0\0"
		     "Host\0 x\0\0"
		     "\0\0"),
		HEAD("GET\0/a\0HTTP/1.1\0x"
		     "Host\0 x\0\0"
		     "\0\0"),
		HEAD("GET\0"),
		HEAD("GET\0/a\0"),
		HEAD("GET\0/a\0HTTP/1."),
		HEAD(REQUEST),
		HEAD(REQUEST "Host"),
#undef HEAD
	};
	for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
		char text[64] = {0}; /* bytes after the head are never read */
		memcpy(text, heads[i].text, heads[i].len);
		ck_assert_msg(judge_one(text, heads[i].len) != NULL, "head %zu", i);
	}
}
END_TEST

START_TEST(a_head_cut_short_breaks_the_walk)
{
	static const char plain[] = REQUEST "Host\0 x\0\0"
					    "\0\0";
	for (size_t len = 0; len < sizeof plain - 1; len++)
		ck_assert_msg(judge_one(plain, len) != NULL, "%zu", len);
}
END_TEST

START_TEST(a_header_from_elsewhere_breaks_the_walk)
{
	static const char text[] = REQUEST "Host\0 x\0\0"
					   "\0\0";
	static const struct field twice[] = {{17, 23}, {17, 23}};
	static const struct field swapped[] = {{23, 17}};
	struct raw_header raw;
	ck_assert_ptr_nonnull(judge(text, sizeof text - 1, "/a", twice, 2));
	ck_assert_ptr_nonnull(judge(text, sizeof text - 1, "/a", swapped, 1));
	ck_assert_ptr_nonnull(judge(text, sizeof text - 1, "/a", NULL, 0));
	raw_header_begin(&raw, text, span_text("/a"), sizeof text - 1);
	raw_header_take(&raw, span_text("Host"), span_text("x"));
	raw_header_end(&raw);
	ck_assert_ptr_nonnull(raw.fault);
}
END_TEST

START_TEST(control_characters_are_refused)
{
	static const char value[] = REQUEST "Host\0 \r\0\0"
					    "\0\0";
	static const char name[] = REQUEST "Ho\vt\0 x\0\0"
					   "\0\0";
	ck_assert_ptr_nonnull(judge_one(value, sizeof value - 1));
	ck_assert_ptr_nonnull(judge_one(name, sizeof name - 1));
	ck_assert_ptr_nonnull(judge(value, sizeof value - 1, "/\t", host, 1));
	ck_assert_ptr_nonnull(judge(value, sizeof value - 1, "", host, 1));
}
END_TEST

Suite *test_raw_header_suite(void);

Suite *test_raw_header_suite(void)
{
	Suite *const suite = suite_create("raw_header");
	TCase *const tcase = tcase_create("raw_header");
	tcase_add_test(tcase, each_header_lies_where_the_line_before_it_ended);
	tcase_add_test(tcase, any_other_layout_breaks_the_walk);
	tcase_add_test(tcase, a_head_cut_short_breaks_the_walk);
	tcase_add_test(tcase, a_header_from_elsewhere_breaks_the_walk);
	tcase_add_test(tcase, control_characters_are_refused);
	suite_add_tcase(suite, tcase);
	return suite;
}
