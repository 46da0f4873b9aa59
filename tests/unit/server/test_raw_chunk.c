#include "tests/unit/unit.h"

#include <string.h>

#include "server/raw_chunk.h"

static bool is_plain(const char *framing)
{
	return raw_chunk_is_plain(framing, framing + strlen(framing), 100);
}

START_TEST(framing_by_the_book_is_plain)
{
	static const char *const plain[] = {"", "5\r\n", "00a\r\n", "5;a=b\r\n", "\r\n5\r\n",
		"5\r\nhello\r\n6\r\n", "1\r\n\n\r\n1\r\n"};
	for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++)
		ck_assert_msg(is_plain(plain[i]), "%zu", i);
}
END_TEST

START_TEST(what_readers_take_differently_is_not)
{
	static const char *const odd[] = {"5\n", "\n", "\r\n", "5;a=b\n", "5;a\n;b\r\n",
		"5;a\rb\r\n", "5;\x01\r\n", "hello\n5\r\n", "\n5\r\n", "x\r\n", ";\r\n", "5"};
	for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++)
		ck_assert_msg(!is_plain(odd[i]), "%zu", i);
}
END_TEST

START_TEST(a_piece_from_elsewhere_is_not)
{
	static const char body[200] = "5\r\n";
	ck_assert(!raw_chunk_is_plain(body + 3, body, 100));
	ck_assert(!raw_chunk_is_plain(body, body + 101, 100));
}
END_TEST

Suite *test_raw_chunk_suite(void);

Suite *test_raw_chunk_suite(void)
{
	Suite *const suite = suite_create("raw_chunk");
	TCase *const tcase = tcase_create("raw_chunk");
	tcase_add_test(tcase, framing_by_the_book_is_plain);
	tcase_add_test(tcase, what_readers_take_differently_is_not);
	tcase_add_test(tcase, a_piece_from_elsewhere_is_not);
	suite_add_tcase(suite, tcase);
	return suite;
}
