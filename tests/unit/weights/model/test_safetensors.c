#include "weights/model/safetensors.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

Suite *test_safetensors_suite(void);

struct header_case {
	const char *json;
	uint64_t data_size;
	const char *message; /* part of it; NULL: accepted */
};

#define T(dtype, shape, offsets) \
	"{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"

static const struct header_case accepted[] = {
	{"{}", 0, NULL},
	{" \t\r\n{ } \n", 0, NULL},
	{"{\"a\":" T("F32", "[]", "[0,4]") "}", 4, NULL},
	{"{\"a\":" T("F32", "[2,3]", "[0,24]") "}   ", 24, NULL},
	{"{\"a\":" T("F32", "[0]", "[0,0]") "}", 0, NULL},
	{"{\"a\":" T("F32", "[0,9223372036854775808]", "[0,0]") "}", 0, NULL},
	{"{\"b\":" T("U8", "[1]", "[3,4]") ",\"a\":" T("U8", "[3]", "[0,3]") "}", 4, NULL},
	{"{\"b\":" T("U8", "[0]", "[3,3]") ",\"a\":" T("U8", "[3]", "[0,3]") ",\"c\":" T(
		 "U8", "[1]", "[3,4]") "}",
		4, NULL},
	{"{\"a\":" T("U8", "[1]", "[0,1]") ",\"b\":" T("F32", "[1]", "[1,5]") "}", 5, NULL},
	{"{\"__metadata__\":null}", 0, NULL},
	{"{\"__metadata__\":{}}", 0, NULL},
	{"{\"__metadata__\":{\"format\":\"pt\",\"x\":\"\"}}", 0, NULL},
	{"{\"a\":{\"extra\":[1,{\"b\":2.5}],\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}",
		1, NULL},
	{"{\"\":" T("U8", "[1]", "[0,1]") "}", 1, NULL},
	{"{\"../..//\\u0000\\ud83d\\ude00\":" T("U8", "[1]", "[0,1]") "}", 1, NULL},
	{"{\"a\":" T("F4", "[2]", "[0,1]") "}", 1, NULL},
	{"{\"a\":" T("F6_E3M2", "[4]", "[0,3]") "}", 3, NULL},
};

static const struct header_case refused[] = {
	{"", 0, "malformed"},
	{"[]", 0, "malformed"},
	{"null", 0, "malformed"},
	{"{} x", 0, "behind the header"},
	{"{\"a\":" T("F32", "[]", "[0,4]") ",}", 4, "malformed"},
	{"{\"\xff\":" T("F32", "[]", "[0,4]") "}", 4, "not UTF-8"},
	{"{\"\xed\xa0\x80\":" T("F32", "[]", "[0,4]") "}", 4, "not UTF-8"},
	{"{\"a\\ud800\":" T("F32", "[]", "[0,4]") "}", 4, "surrogate"},
	{"{\"a\":[\"F32\",[1],[0,4]]}", 4, "must be an object"},
	{"{\"a\":null}", 0, "must be an object"},
	{"{\"a\":" T("F33", "[1]", "[0,4]") "}", 4, "unknown dtype"},
	{"{\"a\":{\"dtype\":1,\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "string is expected"},
	{"{\"a\":{\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "lacks"},
	{"{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", 4, "lacks"},
	{"{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, "lacks"},
	{"{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4,
		"given twice"},
	{"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"shape\":[1],\"data_offsets\":[0,4]}}", 4,
		"given twice"},
	{"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4],\"data_offsets\":[0,4]}}",
		4, "given twice"},
	{"{\"a\":" T("F32", "[1]", "[0]") "}", 4, "malformed"},
	{"{\"a\":" T("F32", "[1]", "[0,4,4]") "}", 4, "malformed"},
	{"{\"a\":" T("F32", "[1]", "[0,4.0]") "}", 4, "whole number"},
	{"{\"a\":" T("F32", "[1]", "[0,4e0]") "}", 4, "whole number"},
	{"{\"a\":" T("F32", "[1]", "[-0,4]") "}", 4, "whole number"},
	{"{\"a\":" T("F32", "[1]", "[-4,0]") "}", 4, "whole number"},
	{"{\"a\":" T("F32", "[-1]", "[0,4]") "}", 4, "whole number"},
	{"{\"a\":" T("F32", "[1.0]", "[0,4]") "}", 4, "whole number"},
	{"{\"a\":" T("F32", "[18446744073709551616]", "[0,4]") "}", 4, "whole number"},
	{"{\"a\":" T("F32", "[1]", "[0,4]") ",\"a\":" T("F32", "[1]", "[0,4]") "}", 4,
		"given twice"},
	{"{\"a\":" T("F32", "[1]", "[0,4]") ",\"a\":" T("F32", "[1]", "[4,8]") "}", 8,
		"given twice"},
	{"{\"a\":" T("F32", "[1]", "[0,4]") ",\"\\u0061\":" T("F32", "[1]", "[4,8]") "}", 8,
		"given twice"},
	{"{\"a\":" T("U8", "[0]", "[0,0]") ",\"a\":" T("U8", "[0]", "[0,0]") "}", 0, "given twice"},
	{"{\"a\":" T("F32", "[1]", "[4,8]") "}", 8, "does not begin"},
	{"{\"a\":" T("U8", "[2]", "[0,2]") ",\"b\":" T("U8", "[2]", "[3,5]") "}", 5,
		"does not begin"},
	{"{\"a\":" T("U8", "[3]", "[0,3]") ",\"b\":" T("U8", "[2]", "[2,4]") "}", 4,
		"does not begin"},
	{"{\"a\":" T("U8", "[2]", "[0,2]") ",\"b\":" T("U8", "[2]", "[0,2]") "}", 2,
		"does not begin"},
	{"{\"a\":" T("U8", "[2]", "[2,0]") "}", 2, "does not begin"},
	{"{\"a\":" T("U8", "[2]", "[0,2]") ",\"b\":" T("U8", "[0]", "[2,1]") "}", 2,
		"does not begin"},
	{"{\"a\":" T("U8", "[2]", "[0,2]") "}", 3,
		"x has 64 bytes, and its header and tensors cover 63: other bytes follow the tensors"},
	{"{\"a\":" T("U8", "[4]", "[0,4]") "}", 3,
		"x has 64 bytes, and its header and tensors cover 65: it is cut off"},
	{"{}", 1, "x has 11 bytes, and its header and tensors cover 10"},
	{"{\"a\":" T("F32", "[2]", "[0,4]") "}", 4, "needs 8"},
	{"{\"a\":" T("F32", "[4294967296,4294967296]", "[0,4]") "}", 4, "overflows"},
	{"{\"a\":" T("F32", "[4611686018427387904]", "[0,4]") "}", 4, "overflows"},
	{"{\"a\":" T("F32", "[9223372036854775808,2,0]", "[0,0]") "}", 0, "overflows"},
	{"{\"a\":" T("F4", "[3]", "[0,1]") "}", 1, "whole bytes"},
	{"{\"a\":" T("F6_E2M3", "[2]", "[0,1]") "}", 1, "whole bytes"},
	{"{\"__metadata__\":{\"a\":1}}", 0, "string is expected"},
	{"{\"__metadata__\":{\"a\":true}}", 0, "string is expected"},
	{"{\"__metadata__\":{\"a\":null}}", 0, "string is expected"},
	{"{\"__metadata__\":{\"a\":{}}}", 0, "string is expected"},
	{"{\"__metadata__\":[]}", 0, "malformed"},
	{"{\"__metadata__\":\"x\"}", 0, "malformed"},
	{"{\"__metadata__\":{},\"__metadata__\":{}}", 0, "given twice"},
	{"{\"__metadata__\":null,\"__metadata__\":null}", 0, "given twice"},
	{"{\"__metadata__\":{\"a\":\"1\",\"a\":\"1\"}}", 0, "given twice"},
};

START_TEST(good_headers_are_accepted)
{
	struct error err = {0};
	struct safetensors *const header =
		safetensors_parse(span_text(accepted[_i].json), accepted[_i].data_size, "x", &err);
	ck_assert_msg(header != NULL, "%s: %s", accepted[_i].json, err.text);
	safetensors_free(header);
}
END_TEST

START_TEST(bad_headers_are_refused)
{
	struct error err = {0};
	ck_assert_msg(safetensors_parse(span_text(refused[_i].json), refused[_i].data_size, "x",
			      &err) == NULL,
		"%s", refused[_i].json);
	ck_assert_int_eq(err.kind, ERROR_INVALID);
	ck_assert_msg(strstr(err.text, refused[_i].message) != NULL, "%s: %s", refused[_i].json,
		err.text);
}
END_TEST

START_TEST(tensors_come_in_order_of_data)
{
	static const char json[] = "{\"__metadata__\":{\"format\":\"pt\"},\"w.\\u00e4\":" T(
		"BF16", "[2,3]", "[4,16]") ",\"b\":" T("F32", "[]", "[0,4]") "}";
	struct error err = {0};
	struct safetensors *const header = safetensors_parse(span_text(json), 16, "x", &err);
	ck_assert_ptr_nonnull(header);
	ck_assert_uint_eq(safetensors_count(header), 2);
	ck_assert(span_equal_text(safetensors_tensor(header, 0)->name, "b"));
	ck_assert_uint_eq(safetensors_tensor(header, 0)->rank, 0);
	ck_assert_uint_eq(safetensors_tensor(header, 0)->elements, 1);
	const struct safetensors_tensor *const w =
		safetensors_find(header, span_text("w.\xc3\xa4"));
	ck_assert_ptr_eq(w, safetensors_tensor(header, 1));
	ck_assert_uint_eq(w->dtype, DTYPE_BF16);
	ck_assert_uint_eq(w->rank, 2);
	ck_assert_uint_eq(w->shape[0], 2);
	ck_assert_uint_eq(w->shape[1], 3);
	ck_assert_uint_eq(w->elements, 6);
	ck_assert_uint_eq(w->begin, 4);
	ck_assert_uint_eq(w->end, 16);
	ck_assert_ptr_null(safetensors_find(header, span_text("nope")));
	ck_assert_uint_eq(safetensors_metadata_count(header), 1);
	ck_assert(span_equal_text(safetensors_metadata(header, 0)->key, "format"));
	ck_assert(span_equal_text(safetensors_metadata_find(header, "format"), "pt"));
	ck_assert_ptr_null(safetensors_metadata_find(header, "nope").data);
	safetensors_free(header);
}
END_TEST

START_TEST(a_million_tensors_are_read)
{
	enum { COUNT = 1000000 };
	struct buffer json;
	struct error err = {0};
	buffer_init(&json, SAFETENSORS_HEADER_MAX_BYTES);
	buffer_add_byte(&json, '{');
	for (unsigned i = 0; i < COUNT; i++)
		buffer_format(&json,
			"%s\"layer.%u\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[%u,%u]}",
			i > 0 ? "," : "", i, i, i + 1);
	buffer_add_byte(&json, '}');
	ck_assert(!buffer_failed(&json));
	struct safetensors *const header = safetensors_parse(buffer_span(&json), COUNT, "x", &err);
	ck_assert_msg(header != NULL, "%s", err.text);
	ck_assert_uint_eq(safetensors_count(header), COUNT);
	ck_assert_uint_eq(safetensors_find(header, span_text("layer.765432"))->begin, 765432);
	safetensors_free(header);
	buffer_release(&json);
}
END_TEST

static int header_size(uint64_t claimed, uint64_t file_size, uint64_t *out_size, struct error *err)
{
	uint8_t bytes[8];
	for (unsigned i = 0; i < 8; i++)
		bytes[i] = (uint8_t)(claimed >> (8 * i));
	return safetensors_header_size(
		span_of(bytes, file_size < 8 ? file_size : 8), file_size, out_size, err);
}

START_TEST(what_else_weights_come_in_is_named)
{
	static const struct {
		const char *begins;
		const char *says;
	} rows[] = {{"PK\3\4\24\0\0\0", "a PyTorch pickle"}, {"\x80\2}q\1(X\5", "a pickle"},
		{"GGUF\3\0\0\0", "a GGUF file"}, {"\x89HDF\r\n\x1a\n", "an HDF5 file"},
		{"abcdefgh", "it is not a safetensors file, or a damaged one: its header claims"}};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct error err = {0};
		uint64_t size;
		ck_assert_int_eq(
			safetensors_header_size(span_of(rows[i].begins, 8), 1000, &size, &err), -1);
		ck_assert_msg(strstr(err.text, rows[i].says) != NULL, "%s", err.text);
	}
	struct error err = {0};
	uint64_t size; /* 640 bytes, and not a pickle */
	ck_assert_int_eq(
		safetensors_header_size(span_of("\x80\2\0\0\0\0\0\0", 8), 1000, &size, &err), 0);
}
END_TEST

START_TEST(a_file_that_ends_inside_of_its_header_is_cut_off)
{
	struct error err = {0};
	uint64_t size;
	ck_assert_int_eq(header_size(500, 100, &size, &err), -1);
	ck_assert_str_eq(err.text,
		"the file has 100 bytes and ends inside its header, which claims 508: it is cut off, or it is not a safetensors file");
}
END_TEST

START_TEST(the_header_length_is_checked_first)
{
	static const struct {
		uint64_t claimed;
		uint64_t file_size;
		bool good;
	} rows[] = {
		{0, 8, true},
		{2, 10, true},
		{100000000, 100000008, true},
		{0, 7, false},
		{0, 0, false},
		{3, 10, false},
		{100000001, 200000000, false},
		{UINT64_MAX, 100, false},
		{UINT64_MAX - 7, 100, false},
		{1, 8, false},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct error err = {0};
		uint64_t size = 99;
		ck_assert_int_eq(header_size(rows[i].claimed, rows[i].file_size, &size, &err),
			rows[i].good ? 0 : -1);
		ck_assert_uint_eq(size, rows[i].good ? rows[i].claimed : 99);
		ck_assert_int_eq(err.kind, rows[i].good ? ERROR_NONE : ERROR_INVALID);
	}
}
END_TEST

START_TEST(the_writer_gives_the_reference_writers_bytes)
{
	static const uint64_t shape[] = {2, 3};
	struct safetensors_tensor tensors[] = {
		{.name = span_text("z"), .dtype = DTYPE_U8, .rank = 1, .shape = shape},
		{.name = span_text("b"), .dtype = DTYPE_BF16, .rank = 2, .shape = shape},
		{.name = span_text("a"), .dtype = DTYPE_BF16, .rank = 0},
		{.name = span_text("q\"\n"), .dtype = DTYPE_F32, .rank = 1, .shape = shape},
		{.name = span_text("n"), .dtype = DTYPE_U16, .rank = 1, .shape = shape},
	};
	const struct safetensors_metadata metadata[] = {{span_text("format"), span_text("pt")}};
	static const char expected[] =
		"{\"__metadata__\":{\"format\":\"pt\"},"
		"\"q\\\"\\n\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
		"\"a\":{\"dtype\":\"BF16\",\"shape\":[],\"data_offsets\":[8,10]},"
		"\"b\":{\"dtype\":\"BF16\",\"shape\":[2,3],\"data_offsets\":[10,22]},"
		"\"n\":{\"dtype\":\"U16\",\"shape\":[2],\"data_offsets\":[22,26]},\"z\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[26,28]}}";
	struct buffer out;
	struct error err = {0};
	uint64_t size = 0;
	buffer_init(&out, 10000);
	ck_assert_msg(
		safetensors_write_header(tensors, 5, metadata, 1, &out, &err) == 0, "%s", err.text);
	ck_assert_uint_eq(out.len % 8, 0);
	ck_assert_int_eq(safetensors_header_size(buffer_span(&out), out.len + 28, &size, &err), 0);
	ck_assert_uint_eq(size, out.len - 8);
	ck_assert_int_eq(memcmp(out.data + 8, expected, sizeof(expected) - 1), 0);
	for (size_t i = 8 + sizeof(expected) - 1; i < out.len; i++)
		ck_assert_uint_eq(out.data[i], ' ');
	ck_assert(span_equal_text(tensors[0].name, "q\"\n"));
	ck_assert_uint_eq(tensors[4].end, 28);
	struct safetensors *const back =
		safetensors_parse(span_slice(buffer_span(&out), 8, size), 28, "x", &err);
	ck_assert_msg(back != NULL, "%s", err.text);
	safetensors_free(back);
	buffer_release(&out);
}
END_TEST

START_TEST(the_writer_makes_an_empty_file)
{
	struct buffer out;
	struct error err = {0};
	buffer_init(&out, 100);
	ck_assert_int_eq(safetensors_write_header(NULL, 0, NULL, 0, &out, &err), 0);
	ck_assert_uint_eq(out.len, 16);
	ck_assert_int_eq(memcmp(out.data, "\x08\0\0\0\0\0\0\0{}      ", 16), 0);
	buffer_release(&out);
}
END_TEST

START_TEST(the_writer_refuses_what_no_reader_takes)
{
	static const uint64_t one[] = {1};
	static const uint64_t huge[] = {UINT64_MAX};
	static const uint64_t large[] = {UINT64_C(1) << 60};
	const struct safetensors_tensor a = {
		.name = span_text("a"), .dtype = DTYPE_F32, .rank = 1, .shape = one};
	struct safetensors_tensor rows[][2] = {{a, a}, {a, a}, {a, a}, {a, a}, {a, a}, {a, a}};
	rows[1][1].dtype = DTYPE_U8;
	rows[2][1].name = span_text("__metadata__");
	rows[3][1] = (struct safetensors_tensor){
		.name = span_text("b"), .dtype = DTYPE_F4, .rank = 1, .shape = one};
	rows[4][1] = (struct safetensors_tensor){
		.name = span_text("b"), .dtype = DTYPE_U8, .rank = 1, .shape = huge};
	rows[5][0] = (struct safetensors_tensor){
		.name = span_text("b"), .dtype = DTYPE_U16, .rank = 1, .shape = large};
	rows[5][1] = rows[5][0];
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct buffer out;
		struct error err = {0};
		buffer_init(&out, 10000);
		ck_assert_int_eq(safetensors_write_header(rows[i], 2, NULL, 0, &out, &err), -1);
		ck_assert_int_eq(err.kind, ERROR_INVALID);
		buffer_release(&out);
	}
}
END_TEST

START_TEST(the_writer_keeps_the_header_limit)
{
	const size_t name_bytes = SAFETENSORS_HEADER_MAX_BYTES;
	char *const name = memory_new(name_bytes);
	memset(name, 'x', name_bytes);
	struct safetensors_tensor tensor = {.name = span_of(name, name_bytes), .dtype = DTYPE_U8};
	struct buffer out;
	struct error err = {0};
	buffer_init(&out, 2 * name_bytes);
	ck_assert_int_eq(safetensors_write_header(&tensor, 1, NULL, 0, &out, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_TOO_LARGE);
	buffer_release(&out);
	free(name);
}
END_TEST

Suite *test_safetensors_suite(void)
{
	Suite *const suite = suite_create("safetensors");
	TCase *const reader = tcase_create("reader");
	tcase_set_timeout(reader, 60);
	tcase_add_loop_test(
		reader, good_headers_are_accepted, 0, sizeof(accepted) / sizeof(accepted[0]));
	tcase_add_loop_test(
		reader, bad_headers_are_refused, 0, sizeof(refused) / sizeof(refused[0]));
	tcase_add_test(reader, tensors_come_in_order_of_data);
	tcase_add_test(reader, a_million_tensors_are_read);
	tcase_add_test(reader, what_else_weights_come_in_is_named);
	tcase_add_test(reader, a_file_that_ends_inside_of_its_header_is_cut_off);
	tcase_add_test(reader, the_header_length_is_checked_first);
	suite_add_tcase(suite, reader);
	TCase *const writer = tcase_create("writer");
	tcase_set_timeout(writer, 60);
	tcase_add_test(writer, the_writer_gives_the_reference_writers_bytes);
	tcase_add_test(writer, the_writer_makes_an_empty_file);
	tcase_add_test(writer, the_writer_refuses_what_no_reader_takes);
	tcase_add_test(writer, the_writer_keeps_the_header_limit);
	suite_add_tcase(suite, writer);
	return suite;
}
