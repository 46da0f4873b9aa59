#include "api/objects/byte_range.h"

#include "tests/unit/unit.h"

static const struct range_row {
	const char *header;
	uint64_t size;
	enum byte_range_kind kind;
	uint64_t first;
	uint64_t length;
} rows[] = {
	{"bytes=0-0", 100, BYTE_RANGE_PART, 0, 1},
	{"bytes=0-99", 100, BYTE_RANGE_PART, 0, 100},
	{"bytes=0-999", 100, BYTE_RANGE_PART, 0, 100},
	{"bytes=50-", 100, BYTE_RANGE_PART, 50, 50},
	{"bytes=99-99", 100, BYTE_RANGE_PART, 99, 1},
	{"bytes=-10", 100, BYTE_RANGE_PART, 90, 10},
	{"bytes=-100", 100, BYTE_RANGE_PART, 0, 100},
	{"bytes=-101", 100, BYTE_RANGE_PART, 0, 100},
	{"bytes=00-01", 100, BYTE_RANGE_PART, 0, 2},
	{"Bytes=3-4", 100, BYTE_RANGE_PART, 3, 2},
	{"  bytes=3-4 ", 100, BYTE_RANGE_PART, 3, 2},
	{"bytes=0-18446744073709551615", 100, BYTE_RANGE_PART, 0, 100},
	{"bytes=5-99999999999999999999999", 100, BYTE_RANGE_PART, 5, 95},
	{"bytes=-99999999999999999999999", 100, BYTE_RANGE_PART, 0, 100},
	{"bytes=0-0", 1, BYTE_RANGE_PART, 0, 1},
	{"bytes=18446744073709551613-", UINT64_MAX, BYTE_RANGE_PART, UINT64_MAX - 2, 2},

	{"bytes=100-", 100, BYTE_RANGE_UNSATISFIABLE, 0, 0},
	{"bytes=100-200", 100, BYTE_RANGE_UNSATISFIABLE, 0, 0},
	{"bytes=-0", 100, BYTE_RANGE_UNSATISFIABLE, 0, 0},
	{"bytes=99999999999999999999999-", 100, BYTE_RANGE_UNSATISFIABLE, 0, 0},
	{"bytes=0-0", 0, BYTE_RANGE_UNSATISFIABLE, 0, 0},
	{"bytes=0-", 0, BYTE_RANGE_UNSATISFIABLE, 0, 0},
	{"bytes=-0", 0, BYTE_RANGE_UNSATISFIABLE, 0, 0},

	{NULL, 100, BYTE_RANGE_WHOLE, 0, 100},
	{"", 100, BYTE_RANGE_WHOLE, 0, 100},
	{"bytes=10-5", 100, BYTE_RANGE_WHOLE, 0, 100},
	{"bytes=abc", 100, BYTE_RANGE_WHOLE, 0, 100},
	{"bytes=a-z", 100, BYTE_RANGE_WHOLE, 0, 100},
	{"bytes=1-z", 100, BYTE_RANGE_WHOLE, 0, 100},
	{"bytes=-z", 100, BYTE_RANGE_WHOLE, 0, 100},
	{"bytes=-", 100, BYTE_RANGE_WHOLE, 0, 100},
	{"bytes=+1-2", 100, BYTE_RANGE_WHOLE, 0, 100},
	{"bytes=1 -2", 100, BYTE_RANGE_WHOLE, 0, 100},
	{"bytes=--1", 100, BYTE_RANGE_WHOLE, 0, 100},
	{"foo=0-1", 100, BYTE_RANGE_WHOLE, 0, 100},
	{"bytes=0-0,1-2", 100, BYTE_RANGE_WHOLE, 0, 100},
	{"bytes=0-0, 1-2", 100, BYTE_RANGE_WHOLE, 0, 100},
	{"bytes=,", 100, BYTE_RANGE_WHOLE, 0, 100},
	{"bytes=", 100, BYTE_RANGE_WHOLE, 0, 100},
	{"bytes", 100, BYTE_RANGE_WHOLE, 0, 100},
	{"0-1", 100, BYTE_RANGE_WHOLE, 0, 100},
	{"bytes=-5", 0, BYTE_RANGE_WHOLE, 0, 0},
	{"bytes=10-5", 0, BYTE_RANGE_WHOLE, 0, 0},
};
enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

START_TEST(test_row)
{
	const struct range_row *const row = &rows[_i];
	const struct byte_range range = byte_range_parse(span_text(row->header), row->size);
	ck_assert_int_eq(range.kind, row->kind);
	if (row->kind == BYTE_RANGE_UNSATISFIABLE)
		return;
	ck_assert_uint_eq(range.first, row->first);
	ck_assert_uint_eq(range.length, row->length);
}
END_TEST

Suite *test_byte_range_suite(void);
Suite *test_byte_range_suite(void)
{
	Suite *const suite = suite_create("byte_range");
	TCase *const rules = tcase_create("rules");
	tcase_add_loop_test(rules, test_row, 0, ROWS);
	suite_add_tcase(suite, rules);
	return suite;
}
