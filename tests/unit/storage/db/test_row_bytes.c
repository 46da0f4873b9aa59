/* Rows as the journal and its snapshots hold them: what was put in comes out again, and what a disk
 * has made of it otherwise is refused. */
#include "storage/db/row_bytes.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "tests/unit/unit.h"

enum { CAP_BYTES = 4096, PADDING_BYTES = 1024 };

static const struct row_value values[] = {
	{.kind = ROW_NULL},
	{.kind = ROW_NUMBER, .number = 0},
	{.kind = ROW_NUMBER, .number = -1},
	{.kind = ROW_NUMBER, .number = INT64_MIN},
	{.kind = ROW_NUMBER, .number = INT64_MAX},
	{.kind = ROW_BYTES, .bytes = {(const uint8_t *)"", 0}},
	{.kind = ROW_BYTES, .bytes = {(const uint8_t *)"a\0b\xff", 4}},
	{.kind = ROW_TEXT, .bytes = {(const uint8_t *)"", 0}},
	{.kind = ROW_TEXT, .bytes = {(const uint8_t *)"text", 4}},
};
enum { VALUES = sizeof values / sizeof values[0] };
static const struct row_value number = {.kind = ROW_NUMBER, .number = 7};
static const struct row_value text = {.kind = ROW_TEXT, .bytes = {(const uint8_t *)"ab", 2}};

static struct buffer encoded;
static struct row row;

static void set_up(void)
{
	buffer_init(&encoded, CAP_BYTES);
}

static void tear_down(void)
{
	buffer_release(&encoded);
}

static void add_all_values(enum row_operation operation, const char *table)
{
	row_bytes_begin(&encoded, operation, table, VALUES);
	for (size_t i = 0; i < VALUES; i++)
		row_bytes_add(&encoded, &values[i]);
}

static void take_right(struct span *rest)
{
	struct error err = {0};
	ck_assert_msg(row_bytes_take(rest, &row, &err) == 1, "%s", err.text);
	ck_assert_int_eq(err.kind, ERROR_NONE);
}

static void expect_end(struct span rest)
{
	struct error err = {0};
	ck_assert_uint_eq(rest.len, 0);
	ck_assert_int_eq(row_bytes_take(&rest, &row, &err), 0);
	ck_assert_int_eq(err.kind, ERROR_NONE);
}

/* Of a copy that is exactly so long, so that a sanitizer sees a look behind its end. */
static void expect_corrupt(struct span bytes)
{
	struct error err = {0};
	uint8_t *copy = memory_copy(bytes.data, bytes.len);
	struct span rest = span_of(copy, bytes.len);
	ck_assert_int_eq(row_bytes_take(&rest, &row, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_CORRUPT);
	free(copy);
}

static void expect_all_values(enum row_operation operation, const char *table)
{
	ck_assert_int_eq(row.operation, operation);
	ck_assert_str_eq(row.table, table);
	ck_assert_uint_eq(row.count, VALUES);
	for (size_t i = 0; i < VALUES; i++) {
		ck_assert_int_eq(row.values[i].kind, values[i].kind);
		ck_assert_int_eq(row.values[i].number, values[i].number);
		ck_assert(span_equal(row.values[i].bytes, values[i].bytes));
	}
}

START_TEST(rows_come_out_as_they_were_put_in)
{
	add_all_values(ROW_PUT, "objects");
	add_all_values(ROW_REMOVE, "packs");
	row_bytes_begin(&encoded, ROW_NEXT, "runs", 1);
	row_bytes_add(&encoded, &number);
	struct span rest = buffer_span(&encoded);
	take_right(&rest);
	expect_all_values(ROW_PUT, "objects");
	take_right(&rest);
	expect_all_values(ROW_REMOVE, "packs");
	take_right(&rest);
	ck_assert_int_eq(row.operation, ROW_NEXT);
	ck_assert_str_eq(row.table, "runs");
	ck_assert_uint_eq(row.count, 1);
	ck_assert_int_eq(row.values[0].number, 7);
	expect_end(rest);
}
END_TEST

/* Files of released versions hold these bytes. */
START_TEST(a_row_has_these_bytes)
{
	static const uint8_t wanted[] = {1, 2, 't', 's', 4,        /* put, table, values */
		1, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, /* -2 */
		3, 2, 0, 0, 0, 'a', 'b', 2, 1, 0, 0, 0, 0xc3, 0};
	row_bytes_begin(&encoded, ROW_PUT, "ts", 4);
	row_bytes_add(&encoded, &(const struct row_value){.kind = ROW_NUMBER, .number = -2});
	row_bytes_add(&encoded, &text);
	row_bytes_add(&encoded,
		&(const struct row_value){
			.kind = ROW_BYTES, .bytes = {(const uint8_t *)"\xc3", 1}});
	row_bytes_add(&encoded, &(const struct row_value){.kind = ROW_NULL});
	ck_assert(span_equal(buffer_span(&encoded), span_of(wanted, sizeof wanted)));
}
END_TEST

START_TEST(a_row_may_be_as_large_as_allowed)
{
	char table[TABLE_NAME_BYTES];
	memset(table, 't', sizeof table - 1);
	table[sizeof table - 1] = '\0';
	row_bytes_begin(&encoded, ROW_PUT, table, ROW_VALUES_MAX);
	for (int64_t i = 0; i < ROW_VALUES_MAX; i++)
		row_bytes_add(&encoded, &(const struct row_value){.kind = ROW_NUMBER, .number = i});
	row_bytes_begin(&encoded, ROW_REMOVE, "", 0);
	struct span rest = buffer_span(&encoded);
	take_right(&rest);
	ck_assert_str_eq(row.table, table);
	ck_assert_uint_eq(row.count, ROW_VALUES_MAX);
	ck_assert_int_eq(row.values[ROW_VALUES_MAX - 1].number, ROW_VALUES_MAX - 1);
	take_right(&rest);
	ck_assert_str_eq(row.table, "");
	ck_assert_uint_eq(row.count, 0);
	expect_end(rest);
}
END_TEST

START_TEST(no_bytes_have_no_row)
{
	expect_end(span_of(NULL, 0));
	expect_end(span_of("", 0));
}
END_TEST

START_TEST(a_row_that_is_cut_off_is_corrupt)
{
	add_all_values(ROW_PUT, "objects");
	for (size_t len = 1; len < encoded.len; len++)
		expect_corrupt(span_slice(buffer_span(&encoded), 0, len));
}
END_TEST

/* In a row of 't' with a number, a text of two bytes and a NULL. */
enum place {
	OPERATION = 0,
	NAME_LENGTH = 1,
	COUNT = 3,
	NUMBER_KIND = 4,
	TEXT_KIND = 13,
	TEXT_LENGTH = 14,
	NULL_KIND = 20
};
static const struct malformed {
	enum place place;
	uint8_t byte;
} malformed[] = {
	{OPERATION, 0},
	{OPERATION, 4},
	{OPERATION, 255},
	{NAME_LENGTH, TABLE_NAME_BYTES},
	{NAME_LENGTH, 255},
	{COUNT, ROW_VALUES_MAX + 1},
	{COUNT, 200},
	{COUNT, 255},
	{NUMBER_KIND, 4},
	{NUMBER_KIND, 9},
	{TEXT_KIND, 9},
	{NULL_KIND, 255},
	{TEXT_LENGTH + 1, 16}, /* 4,098 bytes */
	{TEXT_LENGTH + 3, 1},
	{TEXT_LENGTH + 3, 255},
};

/* Enough zeros follow, NULLs for example, so that a wrong field is not found only because the bytes
 * end. */
START_TEST(a_malformed_field_is_corrupt)
{
	static const uint8_t padding[PADDING_BYTES];
	row_bytes_begin(&encoded, ROW_PUT, "t", 3);
	row_bytes_add(&encoded, &number);
	row_bytes_add(&encoded, &text);
	row_bytes_add(&encoded, &(const struct row_value){.kind = ROW_NULL});
	ck_assert_uint_eq(encoded.len, NULL_KIND + 1);
	buffer_add(&encoded, padding, sizeof padding);
	struct span rest = buffer_span(&encoded);
	take_right(&rest);
	encoded.data[malformed[_i].place] = malformed[_i].byte;
	expect_corrupt(buffer_span(&encoded));
}
END_TEST

START_TEST(a_next_number_is_one_number)
{
	static const struct row_value *const wrong[][2] = {{NULL, NULL}, {&number, &number},
		{&number, &text}, {&text, NULL}, {&values[0], NULL}};
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		buffer_reset(&encoded);
		row_bytes_begin(&encoded, ROW_NEXT, "runs",
			(wrong[i][0] != NULL) + (size_t)(wrong[i][1] != NULL));
		for (size_t j = 0; j < 2 && wrong[i][j] != NULL; j++)
			row_bytes_add(&encoded, wrong[i][j]);
		expect_corrupt(buffer_span(&encoded));
	}
}
END_TEST

Suite *test_row_bytes_suite(void);
Suite *test_row_bytes_suite(void)
{
	Suite *suite = suite_create("row_bytes");
	TCase *tests = tcase_create("all");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, rows_come_out_as_they_were_put_in);
	tcase_add_test(tests, a_row_has_these_bytes);
	tcase_add_test(tests, a_row_may_be_as_large_as_allowed);
	tcase_add_test(tests, no_bytes_have_no_row);
	tcase_add_test(tests, a_row_that_is_cut_off_is_corrupt);
	tcase_add_loop_test(
		tests, a_malformed_field_is_corrupt, 0, sizeof malformed / sizeof malformed[0]);
	tcase_add_test(tests, a_next_number_is_one_number);
	suite_add_tcase(suite, tests);
	return suite;
}
