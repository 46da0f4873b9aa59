#include "weights/codec/dtype.h"

#include <check.h>

Suite *test_dtype_suite(void);

static const struct {
	enum dtype dtype;
	const char *name;
	unsigned bits;
} rows[] = {
	{DTYPE_U64, "U64", 64},
	{DTYPE_I64, "I64", 64},
	{DTYPE_F64, "F64", 64},
	{DTYPE_C64, "C64", 64},
	{DTYPE_F32, "F32", 32},
	{DTYPE_U32, "U32", 32},
	{DTYPE_I32, "I32", 32},
	{DTYPE_BF16, "BF16", 16},
	{DTYPE_F16, "F16", 16},
	{DTYPE_U16, "U16", 16},
	{DTYPE_I16, "I16", 16},
	{DTYPE_F8_E5M2FNUZ, "F8_E5M2FNUZ", 8},
	{DTYPE_F8_E4M3FNUZ, "F8_E4M3FNUZ", 8},
	{DTYPE_F8_E8M0, "F8_E8M0", 8},
	{DTYPE_F8_E4M3, "F8_E4M3", 8},
	{DTYPE_F8_E5M2, "F8_E5M2", 8},
	{DTYPE_I8, "I8", 8},
	{DTYPE_U8, "U8", 8},
	{DTYPE_F6_E3M2, "F6_E3M2", 6},
	{DTYPE_F6_E2M3, "F6_E2M3", 6},
	{DTYPE_F4, "F4", 4},
	{DTYPE_BOOL, "BOOL", 8},
};
enum { ROW_COUNT = sizeof(rows) / sizeof(rows[0]) };
_Static_assert((int)ROW_COUNT == (int)DTYPE_COUNT, "a row for every dtype");

START_TEST(every_dtype_has_its_name_and_width)
{
	enum dtype parsed = DTYPE_COUNT;
	ck_assert_uint_eq(rows[_i].dtype, _i);
	ck_assert_str_eq(dtype_name(rows[_i].dtype), rows[_i].name);
	ck_assert_uint_eq(dtype_bits(rows[_i].dtype), rows[_i].bits);
	ck_assert(dtype_parse(span_text(rows[_i].name), &parsed));
	ck_assert_uint_eq(parsed, rows[_i].dtype);
}
END_TEST

START_TEST(unknown_names_are_refused)
{
	static const char *const names[] = {"", "bf16", "BF16 ", "BF1", "F128", "F8", "float32"};
	enum dtype parsed = DTYPE_U8;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		ck_assert(!dtype_parse(span_text(names[i]), &parsed));
	ck_assert_uint_eq(parsed, DTYPE_U8);
}
END_TEST

Suite *test_dtype_suite(void)
{
	Suite *const suite = suite_create("dtype");
	TCase *const tcase = tcase_create("dtype");
	tcase_add_loop_test(tcase, every_dtype_has_its_name_and_width, 0, ROW_COUNT);
	tcase_add_test(tcase, unknown_names_are_refused);
	suite_add_tcase(suite, tcase);
	return suite;
}
