#include "api/s3/request/checksum_headers.h"

#include <string.h>

#include "tests/unit/api/fake_exchange.h"
#include "tests/unit/unit.h"

enum { HEADERS_MOST = 3 };

static const struct read_row {
	enum checksum_headers_use use;
	const char *headers[2 * HEADERS_MOST]; /* names and values in turn */
	enum checksum_algorithm trailer;
	enum error_kind kind; /* ERROR_NONE: the rest is what was read */
	enum checksum_algorithm algorithm;
	bool has_value;
	uint64_t parts;
	bool has_type;
	enum checksum_type type;
} rows[] = {
	{.use = CHECKSUM_OF_BODY},
	{CHECKSUM_OF_BODY, {"x-amz-checksum-crc32", "y/Q5Jg=="}, .algorithm = CHECKSUM_CRC32,
		.has_value = true, .type = CHECKSUM_COMPOSITE},
	{CHECKSUM_OF_BODY, {"X-Amz-Checksum-CRC64NVME", " rosUhgp5mIg= "},
		.algorithm = CHECKSUM_CRC64NVME, .has_value = true},
	{CHECKSUM_OF_BODY,
		{"x-amz-checksum-crc32", "y/Q5Jg==", "x-amz-sdk-checksum-algorithm", "crc32"},
		.algorithm = CHECKSUM_CRC32, .has_value = true, .type = CHECKSUM_COMPOSITE},
	{CHECKSUM_OF_BODY,
		{"x-amz-checksum-crc32", "y/Q5Jg==", "x-amz-checksum-type", "FULL_OBJECT"},
		.algorithm = CHECKSUM_CRC32, .has_value = true, .has_type = true},
	{CHECKSUM_OF_BODY, {NULL}, .trailer = CHECKSUM_CRC32C, .algorithm = CHECKSUM_CRC32C,
		.type = CHECKSUM_COMPOSITE},
	{CHECKSUM_OF_BODY, {"x-amz-sdk-checksum-algorithm", "CRC32C"}, .trailer = CHECKSUM_CRC32C,
		.algorithm = CHECKSUM_CRC32C, .type = CHECKSUM_COMPOSITE},
	{CHECKSUM_OF_BODY, {"x-amz-checksum-mode", "ENABLED"}, .algorithm = CHECKSUM_NONE},
	{CHECKSUM_OF_BODY, {"x-amz-checksum-crc32", "y/Q5Jg==", "x-amz-checksum-sha1", "AAAA"},
		.kind = ERROR_INVALID_REQUEST},
	{CHECKSUM_OF_BODY, {"x-amz-checksum-crc32", "y/Q5Jg==", "x-amz-checksum-crc32", "y/Q5Jg=="},
		.kind = ERROR_INVALID_REQUEST},
	{CHECKSUM_OF_BODY, {"x-amz-checksum-crc33", "y/Q5Jg=="}, .kind = ERROR_INVALID_REQUEST},
	{CHECKSUM_OF_BODY, {"x-amz-checksum-crc32", "y/Q5Jg=="}, .trailer = CHECKSUM_CRC32,
		.kind = ERROR_INVALID_REQUEST},
	{CHECKSUM_OF_BODY, {"x-amz-sdk-checksum-algorithm", "CRC32"},
		.kind = ERROR_INVALID_REQUEST},
	{CHECKSUM_OF_BODY, {"x-amz-sdk-checksum-algorithm", "SHA1"}, .trailer = CHECKSUM_CRC32,
		.kind = ERROR_INVALID_REQUEST},
	{CHECKSUM_OF_BODY,
		{"x-amz-checksum-crc32", "y/Q5Jg==", "x-amz-sdk-checksum-algorithm", "SHA256"},
		.kind = ERROR_INVALID_REQUEST},
	{CHECKSUM_OF_BODY,
		{"x-amz-checksum-crc32", "y/Q5Jg==", "x-amz-sdk-checksum-algorithm", "CRC"},
		.kind = ERROR_INVALID_REQUEST},
	{CHECKSUM_OF_BODY, {"x-amz-checksum-type", "FULL_OBJECT"}, .kind = ERROR_INVALID_REQUEST},
	{CHECKSUM_OF_BODY, {"x-amz-checksum-crc32", "y/Q5Jg==", "x-amz-checksum-type", "COMPOSITE"},
		.kind = ERROR_INVALID_REQUEST},
	{CHECKSUM_OF_BODY, {"x-amz-checksum-crc32", "y/Q5Jg==", "x-amz-checksum-type", "HALF"},
		.kind = ERROR_INVALID_REQUEST},
	{CHECKSUM_OF_BODY, {"x-amz-checksum-crc32", "bad"}, .kind = ERROR_BAD_DIGEST},
	{CHECKSUM_OF_BODY, {"x-amz-checksum-crc32", ""}, .kind = ERROR_BAD_DIGEST},
	{CHECKSUM_OF_BODY, {"x-amz-checksum-crc32", "rosUhgp5mIg="}, .kind = ERROR_BAD_DIGEST},
	{CHECKSUM_OF_BODY, {"x-amz-checksum-crc32", "y/Q5Jg==-1"}, .kind = ERROR_BAD_DIGEST},
	{CHECKSUM_TO_STORE, {"x-amz-checksum-algorithm", "SHA256"}, .algorithm = CHECKSUM_SHA256,
		.type = CHECKSUM_COMPOSITE},
	{CHECKSUM_TO_STORE, {"x-amz-checksum-algorithm", "CRC64NVME"},
		.algorithm = CHECKSUM_CRC64NVME, .type = CHECKSUM_FULL_OBJECT},
	{CHECKSUM_TO_STORE,
		{"x-amz-checksum-algorithm", "CRC32", "x-amz-checksum-type", "FULL_OBJECT"},
		.algorithm = CHECKSUM_CRC32, .has_type = true, .type = CHECKSUM_FULL_OBJECT},
	{CHECKSUM_TO_STORE,
		{"x-amz-checksum-algorithm", "CRC64NVME", "x-amz-checksum-type", "COMPOSITE"},
		.kind = ERROR_INVALID_REQUEST},
	{CHECKSUM_TO_STORE,
		{"x-amz-checksum-algorithm", "SHA1", "x-amz-checksum-type", "FULL_OBJECT"},
		.kind = ERROR_INVALID_REQUEST},
	{CHECKSUM_TO_STORE, {"x-amz-checksum-type", "COMPOSITE"}, .kind = ERROR_INVALID_REQUEST},
	{CHECKSUM_TO_STORE, {"x-amz-checksum-algorithm", "CRC33"}, .kind = ERROR_INVALID_REQUEST},
	{CHECKSUM_OF_OBJECT, {"x-amz-checksum-crc32", "y/Q5Jg==-3"}, .algorithm = CHECKSUM_CRC32,
		.has_value = true, .parts = 3, .type = CHECKSUM_COMPOSITE},
	{CHECKSUM_OF_OBJECT, {"x-amz-checksum-type", "COMPOSITE"}, .has_type = true,
		.type = CHECKSUM_COMPOSITE},
	{CHECKSUM_OF_OBJECT, {"x-amz-checksum-crc32", "y/Q5Jg==-0"}, .kind = ERROR_BAD_DIGEST},
	{CHECKSUM_OF_OBJECT, {"x-amz-checksum-crc32", "y/Q5Jg==-x"}, .kind = ERROR_BAD_DIGEST},
};

START_TEST(headers_are_read)
{
	const struct read_row *const row = &rows[_i];
	struct fake_exchange *const fake = fake_exchange_new(NULL, METHOD_PUT, "/bkt/k");
	struct checksum_headers got;
	struct error err = {0};
	for (size_t i = 0; i < HEADERS_MOST && row->headers[2 * i] != NULL; i++)
		fake_exchange_add(fake, row->headers[2 * i], row->headers[2 * i + 1]);
	fake->exchange.trailer_algorithm = row->trailer;
	const int result = checksum_headers_read(&fake->exchange, row->use, &got, &err);
	ck_assert_int_eq(err.kind, row->kind);
	ck_assert_int_eq(result, row->kind == ERROR_NONE ? 0 : -1);
	if (row->kind == ERROR_NONE) {
		ck_assert_int_eq(got.algorithm, row->algorithm);
		ck_assert_int_eq(
			got.value.algorithm, row->has_value ? row->algorithm : CHECKSUM_NONE);
		ck_assert_uint_eq(got.value_parts, row->parts);
		ck_assert_int_eq(got.has_type, row->has_type);
		ck_assert_int_eq(got.type, row->type);
		ck_assert_int_eq(got.in_trailer, row->trailer != CHECKSUM_NONE);
	}
	fake_exchange_free(fake);
}
END_TEST

START_TEST(the_expected_value_comes_from_header_or_trailer)
{
	struct fake_exchange *const fake = fake_exchange_new(NULL, METHOD_PUT, "/bkt/k");
	struct checksum_headers got;
	struct error err = {0};
	ck_assert_int_eq(checksum_headers_read(&fake->exchange, CHECKSUM_OF_BODY, &got, &err), 0);
	ck_assert_ptr_null(checksum_headers_expected(&fake->exchange, &got));
	fake->exchange.trailer_algorithm = CHECKSUM_CRC32;
	ck_assert_int_eq(checksum_headers_read(&fake->exchange, CHECKSUM_OF_BODY, &got, &err), 0);
	ck_assert_ptr_null(checksum_headers_expected(&fake->exchange, &got));
	checksum_of(CHECKSUM_CRC32, span_text("123456789"), &fake->exchange.trailer);
	ck_assert_ptr_eq(checksum_headers_expected(&fake->exchange, &got), &fake->exchange.trailer);
	fake->exchange.trailer_algorithm = CHECKSUM_NONE;
	fake_exchange_add(fake, "x-amz-checksum-crc32", "y/Q5Jg==");
	ck_assert_int_eq(checksum_headers_read(&fake->exchange, CHECKSUM_OF_BODY, &got, &err), 0);
	ck_assert(checksum_equal(
		checksum_headers_expected(&fake->exchange, &got), &fake->exchange.trailer));
	fake_exchange_free(fake);
}
END_TEST

Suite *test_checksum_headers_suite(void);

Suite *test_checksum_headers_suite(void)
{
	Suite *const suite = suite_create("checksum_headers");
	TCase *const tests = tcase_create("checksum_headers");
	tcase_add_loop_test(tests, headers_are_read, 0, sizeof(rows) / sizeof(rows[0]));
	tcase_add_test(tests, the_expected_value_comes_from_header_or_trailer);
	suite_add_tcase(suite, tests);
	return suite;
}
