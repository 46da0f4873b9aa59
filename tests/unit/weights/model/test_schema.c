#include "weights/model/schema.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

Suite *test_schema_suite(void);

#define TEXT(literal) span_of(literal, sizeof(literal) - 1)

static struct schema *parsed(struct span text)
{
	struct error err = {0};
	struct schema *const schema = schema_parse(text, &err);
	ck_assert_msg(schema != NULL, "%s", err.text);
	return schema;
}

static struct safetensors *shard(const char *json, uint64_t size)
{
	struct error err = {0};
	struct safetensors *const header = safetensors_parse(span_text(json), size, "x", &err);
	ck_assert_msg(header != NULL, "%s", err.text);
	return header;
}

START_TEST(shards_make_one_sorted_schema)
{
	struct error err = {0};
	struct safetensors *const one =
		shard("{\"b\":{\"dtype\":\"BF16\",\"shape\":[2,3],\"data_offsets\":[0,12]},"
		      "\"d\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[12,16]}}",
			16);
	struct safetensors *const two =
		shard("{\"a\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]},"
		      "\"c\":{\"dtype\":\"U8\",\"shape\":[5],\"data_offsets\":[0,5]}}",
			5);
	struct schema *const schema = schema_new();
	struct buffer text;
	buffer_init(&text, 1000);
	ck_assert_int_eq(schema_add(schema, one, &err), 0);
	ck_assert_int_eq(schema_add(schema, two, &err), 0);
	schema_finish(schema);
	safetensors_free(one);
	safetensors_free(two);
	ck_assert_uint_eq(schema_count(schema), 4);
	ck_assert_uint_eq(schema_bytes(schema), 21);
	ck_assert(span_equal_text(schema_tensor(schema, 2)->name, "c"));
	ck_assert_int_eq(schema_find(schema, span_text("d")), 3);
	ck_assert_int_eq(schema_find(schema, span_text("bb")), -1);
	schema_print(schema, &text);
	ck_assert(span_equal(buffer_span(&text),
		TEXT("a\0U8\0"
		     "0\0b\0BF16\0"
		     "2x3\0c\0U8\0"
		     "5\0d\0F32\0\0")));
	buffer_release(&text);
	schema_free(schema);
}
END_TEST

START_TEST(a_name_in_two_shards_is_refused)
{
	struct error err = {0};
	struct safetensors *const one =
		shard("{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1);
	struct schema *const schema = schema_new();
	ck_assert_int_eq(schema_add(schema, one, &err), 0);
	ck_assert_int_eq(schema_add(schema, one, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_INVALID);
	ck_assert_str_eq(err.text, "tensor 'a' is given twice");
	schema_free(schema);
	safetensors_free(one);
}
END_TEST

START_TEST(a_zero_byte_in_a_name_is_refused)
{
	struct error err = {0};
	struct safetensors *const one =
		shard("{\"a\\u0000b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1);
	struct schema *const schema = schema_new();
	ck_assert_int_eq(schema_add(schema, one, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_INVALID);
	schema_free(schema);
	safetensors_free(one);
}
END_TEST

START_TEST(text_comes_back)
{
	static const char text[] = "\0U8\0"
				   "3\0model.\xc3\xa4\0BF16\0"
				   "128x0x7\0z\0F4\0"
				   "2\0";
	struct schema *const schema = parsed(TEXT(text));
	struct buffer out;
	buffer_init(&out, 1000);
	schema_print(schema, &out);
	ck_assert(span_equal(buffer_span(&out), TEXT(text)));
	ck_assert_uint_eq(schema_bytes(schema), 4);
	buffer_release(&out);
	schema_free(schema);
	struct schema *const none = parsed((struct span){0});
	ck_assert_uint_eq(schema_count(none), 0);
	ck_assert_int_eq(schema_find(none, span_text("a")), -1);
	schema_free(none);
}
END_TEST

#define ROW(literal) literal, sizeof(literal) - 1
static const struct {
	const char *text;
	size_t len;
} malformed[] = {
	{ROW("a")},
	{ROW("a\0U8")},
	{ROW("a\0U8\0"
	     "1")},
	{ROW("a\0U9\0"
	     "1\0")},
	{ROW("a\0U8\0"
	     "01\0")},
	{ROW("a\0U8\0"
	     "1x\0")},
	{ROW("a\0U8\0x1\0")},
	{ROW("a\0U8\0"
	     "1xx2\0")},
	{ROW("a\0U8\0-1\0")},
	{ROW("a\0U8\0"
	     "18446744073709551616\0")},
	{ROW("a\0U8\0"
	     "4294967296x4294967296\0")},
	{ROW("a\0U16\0"
	     "18446744073709551615\0")},
	{ROW("a\0F4\0"
	     "3\0")},
	{ROW("\xff\0U8\0"
	     "1\0")},
	{ROW("a\0U8\0"
	     "1\0a\0U8\0"
	     "1\0")},
	{ROW("a\0U8\0"
	     "1\0b\0U8\0"
	     "1\0a\0U8\0"
	     "1\0")},
	{ROW("a\0U8\0"
	     "2305843009213693951\0b\0U8\0"
	     "2305843009213693951\0c\0\0\0")},
};

START_TEST(malformed_text_is_refused)
{
	struct error err = {0};
	ck_assert_ptr_null(schema_parse(span_of(malformed[_i].text, malformed[_i].len), &err));
	ck_assert_int_eq(err.kind, ERROR_INVALID);
}
END_TEST

START_TEST(schemas_are_compared_by_name)
{
	static const struct {
		const char *text;
		size_t len;
		enum error_kind kind;
		const char *message;
	} rows[] = {
		{ROW("a\0U8\0"
		     "1\0b\0BF16\0"
		     "2x3\0c\0U8\0"
		     "1\0"),
			ERROR_NONE, ""},
		{ROW("a\0U8\0"
		     "1\0c\0U8\0"
		     "1\0"),
			ERROR_INCOMPLETE_ANCHOR, "tensor 'b' is missing"},
		{ROW("a\0U8\0"
		     "1\0"),
			ERROR_INCOMPLETE_ANCHOR, "tensor 'b' is missing"},
		{ROW(""), ERROR_INCOMPLETE_ANCHOR, "tensor 'a' is missing"},
		{ROW("a\0U8\0"
		     "1\0d\0U8\0"
		     "1\0"),
			ERROR_SCHEMA_MISMATCH, "tensor 'd' is not in the schema"},
		{ROW("a\0U8\0"
		     "2\0"),
			ERROR_SCHEMA_MISMATCH, "tensor 'a' is U8 2, not U8 1"},
		{ROW("a\0I8\0"
		     "1\0"),
			ERROR_SCHEMA_MISMATCH, "tensor 'a' is I8 1, not U8 1"},
		{ROW("b\0BF16\0"
		     "3x2\0"),
			ERROR_SCHEMA_MISMATCH, "tensor 'b' is BF16 3x2, not BF16 2x3"},
		{ROW("b\0BF16\0"
		     "6\0"),
			ERROR_SCHEMA_MISMATCH, "tensor 'b' is BF16 6, not BF16 2x3"},
		{ROW("a\0U8\0"
		     "1\0aa\0U8\0"
		     "1\0b\0BF16\0"
		     "2x3\0c\0U8\0"
		     "1\0"),
			ERROR_SCHEMA_MISMATCH, "tensor 'aa' is not"},
	};
	struct schema *const schema = parsed(TEXT("a\0U8\0"
						  "1\0b\0BF16\0"
						  "2x3\0c\0U8\0"
						  "1\0"));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct error err = {0};
		struct schema *const other = parsed(span_of(rows[i].text, rows[i].len));
		ck_assert_int_eq(
			schema_check(schema, other, &err), rows[i].kind == ERROR_NONE ? 0 : -1);
		ck_assert_int_eq(err.kind, rows[i].kind);
		ck_assert_msg(strstr(err.text, rows[i].message) != NULL, "%zu: %s", i, err.text);
		schema_free(other);
	}
	schema_free(schema);
}
END_TEST

START_TEST(digests_follow_the_text)
{
	struct schema *const schema = parsed(TEXT("a\0U8\0"
						  "1\0b\0BF16\0"
						  "2x3\0"));
	struct digest128 digests[2];
	struct digest128 actual = schema_digest(schema);
	struct digest128 expected = xxh3_128(TEXT("a\0U8\0"
						  "1\0b\0BF16\0"
						  "2x3\0"));
	ck_assert(digest128_equal(&actual, &expected));
	memset(&digests[0], 'x', 16);
	memset(&digests[1], 'y', 16);
	actual = schema_checkpoint_digest(schema, digests);
	expected = xxh3_128(TEXT("a\0U8\0"
				 "1\0xxxxxxxxxxxxxxxxb\0BF16\0"
				 "2x3\0yyyyyyyyyyyyyyyy"));
	ck_assert(digest128_equal(&actual, &expected));
	schema_free(schema);
}
END_TEST

START_TEST(a_list_of_tensors_makes_a_schema)
{
	struct error err = {0};
	uint64_t shape[] = {2, 3};
	char name[] = "b";
	const struct schema_tensor list[] = {
		{span_text("d"), DTYPE_F32, 0, NULL, 4},
		{span_text(name), DTYPE_BF16, 2, shape, 12},
		{span_text("a"), DTYPE_U8, 1, (const uint64_t[]){0}, 0},
		{span_text("c"), DTYPE_F4, 1, (const uint64_t[]){6}, 3},
	};
	struct schema *const schema = schema_of_tensors(list, 4, &err);
	ck_assert_msg(schema != NULL, "%s", err.text);
	name[0] = 'x';
	shape[0] = 9;
	struct buffer text;
	buffer_init(&text, 1000);
	schema_print(schema, &text);
	ck_assert(span_equal(buffer_span(&text),
		TEXT("a\0U8\0"
		     "0\0b\0BF16\0"
		     "2x3\0c\0F4\0"
		     "6\0d\0F32\0\0")));
	ck_assert_uint_eq(schema_bytes(schema), 19);
	ck_assert_int_eq(schema_find(schema, span_text("d")), 3);
	buffer_release(&text);
	schema_free(schema);
	struct schema *const none = schema_of_tensors(NULL, 0, &err);
	ck_assert_uint_eq(schema_count(none), 0);
	schema_free(none);
}
END_TEST

static const uint64_t huge[] = {UINT64_C(1) << 40, UINT64_C(1) << 40, 0};
static const uint64_t seven[] = {7};
static const struct {
	struct schema_tensor tensor;
	const char *message;
} bad_tensors[] = {
	{{{(const uint8_t *)"ok", 2}, DTYPE_U8, 1, seven, 7}, "tensor 'ok' is given twice"},
	{{{(const uint8_t *)"t", 1}, DTYPE_BF16, 1, seven, 13},
		"tensor 't' has 13 bytes; its dtype and shape say 14"},
	{{{(const uint8_t *)"t", 1}, DTYPE_BF16, 0, NULL, 0},
		"tensor 't' has 0 bytes; its dtype and shape say 2"},
	{{{(const uint8_t *)"t", 1}, DTYPE_F4, 1, seven, 3},
		"tensor 't' has a shape that overflows or does not fill whole bytes"},
	{{{(const uint8_t *)"t", 1}, DTYPE_U8, 3, huge, 0},
		"tensor 't' has a shape that overflows or does not fill whole bytes"},
	{{{(const uint8_t *)"t", 1}, DTYPE_C64, 1, (const uint64_t[]){UINT64_C(1) << 58}, 0},
		"tensor 't' has a shape that overflows or does not fill whole bytes"},
	{{{(const uint8_t *)"\xff", 1}, DTYPE_U8, 1, seven, 7},
		"tensor '\xff' has a name that is not UTF-8"},
	{{{(const uint8_t *)"a\0b", 3}, DTYPE_U8, 1, seven, 7},
		"tensor 'a' has a zero byte in its name"},
	{{{(const uint8_t *)"__metadata__", 12}, DTYPE_U8, 1, seven, 7},
		"tensor '__metadata__' has the reserved name"},
};

START_TEST(a_bad_list_is_refused)
{
	struct error err = {0};
	const struct schema_tensor list[] = {
		{span_text("ok"), DTYPE_U8, 1, seven, 7}, bad_tensors[_i].tensor};
	ck_assert_ptr_null(schema_of_tensors(list, 2, &err));
	ck_assert_int_eq(err.kind, ERROR_INVALID);
	ck_assert_str_eq(err.text, bad_tensors[_i].message);
}
END_TEST

Suite *test_schema_suite(void)
{
	Suite *const suite = suite_create("schema");
	TCase *const tcase = tcase_create("schema");
	tcase_add_test(tcase, shards_make_one_sorted_schema);
	tcase_add_test(tcase, a_name_in_two_shards_is_refused);
	tcase_add_test(tcase, a_zero_byte_in_a_name_is_refused);
	tcase_add_test(tcase, text_comes_back);
	tcase_add_loop_test(
		tcase, malformed_text_is_refused, 0, sizeof(malformed) / sizeof(malformed[0]));
	tcase_add_test(tcase, schemas_are_compared_by_name);
	tcase_add_test(tcase, a_list_of_tensors_makes_a_schema);
	tcase_add_loop_test(
		tcase, a_bad_list_is_refused, 0, sizeof(bad_tensors) / sizeof(bad_tensors[0]));
	tcase_add_test(tcase, digests_follow_the_text);
	suite_add_tcase(suite, tcase);
	return suite;
}
