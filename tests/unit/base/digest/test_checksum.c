#include "tests/unit/unit.h"

#include <string.h>

#include "base/digest/checksum.h"

/* For "123456789": the check values of the CRC catalogue, and for the digests those of their own
 * programs. */
static const struct {
	enum checksum_algorithm algorithm;
	const char *name, *suffix, *element, *header;
	size_t len;
	bool full_object, composite;
	enum checksum_type by_default;
	const char *text;
} rows[] = {
	{CHECKSUM_CRC32, "CRC32", "crc32", "ChecksumCRC32", "x-amz-checksum-crc32", 4, true, true,
		CHECKSUM_COMPOSITE, "y/Q5Jg=="},
	{CHECKSUM_CRC32C, "CRC32C", "crc32c", "ChecksumCRC32C", "x-amz-checksum-crc32c", 4, true,
		true, CHECKSUM_COMPOSITE, "4waSgw=="},
	{CHECKSUM_CRC64NVME, "CRC64NVME", "crc64nvme", "ChecksumCRC64NVME",
		"x-amz-checksum-crc64nvme", 8, true, false, CHECKSUM_FULL_OBJECT, "rosUhgp5mIg="},
	{CHECKSUM_SHA1, "SHA1", "sha1", "ChecksumSHA1", "x-amz-checksum-sha1", 20, false, true,
		CHECKSUM_COMPOSITE, "98O8HYCOBHMq32eZZczDTKeuNEE="},
	{CHECKSUM_SHA256, "SHA256", "sha256", "ChecksumSHA256", "x-amz-checksum-sha256", 32, false,
		true, CHECKSUM_COMPOSITE, "FeKw08M4keuw8e9gnsQZQgwg4yDOlMZfvIwzEkSOsiU="},
	{CHECKSUM_SHA512, "SHA512", "sha512", "ChecksumSHA512", "x-amz-checksum-sha512", 64, false,
		true, CHECKSUM_COMPOSITE,
		"2eZ2LdHI6vbWGzxhkvxAjU1tXxF20MKRabwk5xw/J0rSf81YEbMT1oH35V7ALXPUmclUVba1u1A6z1dPuo/+hQ=="},
	{CHECKSUM_MD5, "MD5", "md5", "ChecksumMD5", "x-amz-checksum-md5", 16, false, true,
		CHECKSUM_COMPOSITE, "JfnnlDI7RTiF9RgfG2JNCw=="},
	{CHECKSUM_XXHASH64, "XXHASH64", "xxhash64", "ChecksumXXHASH64", "x-amz-checksum-xxhash64",
		8, false, true, CHECKSUM_COMPOSITE, "jLhB20DmroM="},
	{CHECKSUM_XXHASH3, "XXHASH3", "xxhash3", "ChecksumXXHASH3", "x-amz-checksum-xxhash3", 8,
		false, true, CHECKSUM_COMPOSITE, "ctyxi2ehff8="},
	{CHECKSUM_XXHASH128, "XXHASH128", "xxhash128", "ChecksumXXHASH128",
		"x-amz-checksum-xxhash128", 16, false, true, CHECKSUM_COMPOSITE,
		"MxGUd+3l3NXpcWQnaB1YYA=="},
};
enum { ROWS = sizeof rows / sizeof rows[0], LONG_BYTES = 70000 };
_Static_assert(ROWS == CHECKSUM_ALGORITHMS - 1, "a row for each algorithm");

static const char *text_of(const struct checksum *checksum)
{
	static char text[CHECKSUM_TEXT_BYTES];
	checksum_format(checksum, 1, text);
	return text;
}

static struct span long_input(void)
{
	static uint8_t bytes[LONG_BYTES];
	unsigned seed = 5;
	for (size_t i = 0; i < LONG_BYTES; i++) {
		seed = seed * 1664525 + 1013904223;
		bytes[i] = (uint8_t)(seed >> 24);
	}
	return span_of(bytes, LONG_BYTES);
}

START_TEST(published_vectors)
{
	struct checksum checksum;
	checksum_of(rows[_i].algorithm, span_text("123456789"), &checksum);
	ck_assert_int_eq(checksum.algorithm, rows[_i].algorithm);
	ck_assert_int_eq(checksum.type, CHECKSUM_FULL_OBJECT);
	ck_assert_uint_eq(checksum.len, rows[_i].len);
	ck_assert_str_eq(text_of(&checksum), rows[_i].text);
}
END_TEST

START_TEST(crc64_of_a_run)
{
	uint8_t bytes[1024];
	struct checksum checksum;
	memset(bytes, 'A', sizeof bytes);
	checksum_of(CHECKSUM_CRC64NVME, span_of(bytes, sizeof bytes), &checksum);
	ck_assert_str_eq(text_of(&checksum), "Qeh8oXvGiSo=");
}
END_TEST

START_TEST(names_lead_to_the_algorithm)
{
	const enum checksum_algorithm algorithm = rows[_i].algorithm;
	ck_assert_str_eq(checksum_name(algorithm), rows[_i].name);
	ck_assert_str_eq(checksum_suffix(algorithm), rows[_i].suffix);
	ck_assert_str_eq(checksum_element(algorithm), rows[_i].element);
	ck_assert_str_eq(checksum_header(algorithm), rows[_i].header);
	ck_assert_uint_eq(checksum_length(algorithm), rows[_i].len);
	ck_assert_int_eq(checksum_by_name(span_text(rows[_i].name)), algorithm);
	ck_assert_int_eq(checksum_by_name(span_text(rows[_i].suffix)), algorithm);
	ck_assert_int_eq(checksum_by_header(span_text(rows[_i].header)), algorithm);
	ck_assert_int_eq(checksum_by_header(span_text(rows[_i].name)), CHECKSUM_NONE);
	ck_assert(checksum_allows(algorithm, CHECKSUM_FULL_OBJECT) == rows[_i].full_object);
	ck_assert(checksum_allows(algorithm, CHECKSUM_COMPOSITE) == rows[_i].composite);
	ck_assert_int_eq(checksum_default_type(algorithm), rows[_i].by_default);
	ck_assert(checksum_combines(algorithm) == rows[_i].full_object);
}
END_TEST

START_TEST(other_names_lead_nowhere)
{
	ck_assert_int_eq(checksum_by_name(span_text("CRC16")), CHECKSUM_NONE);
	ck_assert_int_eq(checksum_by_name(span_text("")), CHECKSUM_NONE);
	ck_assert_int_eq(checksum_by_name(span_text("CRC32 ")), CHECKSUM_NONE);
	ck_assert_int_eq(checksum_by_header(span_text("x-amz-checksum-")), CHECKSUM_NONE);
	ck_assert_int_eq(checksum_by_header(span_text("x-amz-checksum-algorithm")), CHECKSUM_NONE);
	ck_assert_int_eq(checksum_by_header(span_text("X-Amz-Checksum-Crc32c")), CHECKSUM_CRC32C);
	ck_assert_str_eq(checksum_name(CHECKSUM_NONE), "");
	ck_assert_str_eq(checksum_suffix(CHECKSUM_NONE), "");
	ck_assert_uint_eq(checksum_length(CHECKSUM_NONE), 0);
	ck_assert(!checksum_allows(CHECKSUM_NONE, CHECKSUM_FULL_OBJECT) &&
		!checksum_allows(CHECKSUM_NONE, CHECKSUM_COMPOSITE));
	ck_assert(!checksum_combines(CHECKSUM_NONE));
}
END_TEST

START_TEST(text_parses_back)
{
	struct checksum checksum;
	ck_assert(checksum_parse(rows[_i].algorithm, span_text(rows[_i].text), &checksum));
	ck_assert_str_eq(text_of(&checksum), rows[_i].text);
	struct checksum direct;
	checksum_of(rows[_i].algorithm, span_text("123456789"), &direct);
	ck_assert(checksum_equal(&checksum, &direct));
	direct.bytes[direct.len - 1] ^= 1;
	ck_assert(!checksum_equal(&checksum, &direct));
	struct checksum untouched = {.len = 77};
	ck_assert(!checksum_parse(rows[_i].algorithm, span_text("bad"), &untouched));
	/* three bytes */
	ck_assert(!checksum_parse(rows[_i].algorithm, span_text("AAAA"), &untouched));
	ck_assert(!checksum_parse(rows[_i].algorithm, span_text(""), &untouched));
	ck_assert_uint_eq(untouched.len, 77);
}
END_TEST

START_TEST(equal_bytes_of_two_algorithms_differ)
{
	struct checksum crc32;
	struct checksum crc32c;
	ck_assert(checksum_parse(CHECKSUM_CRC32, span_text("y/Q5Jg=="), &crc32));
	ck_assert(checksum_parse(CHECKSUM_CRC32C, span_text("y/Q5Jg=="), &crc32c));
	ck_assert(!checksum_equal(&crc32, &crc32c));
}
END_TEST

START_TEST(composite_text_has_the_parts)
{
	struct checksum checksum;
	char text[CHECKSUM_TEXT_BYTES];
	checksum_of(CHECKSUM_SHA512, span_text("123456789"), &checksum);
	checksum.type = CHECKSUM_COMPOSITE;
	checksum_format(&checksum, 10000, text); /* the longest text */
	ck_assert_str_eq(text,
		"2eZ2LdHI6vbWGzxhkvxAjU1tXxF20MKRabwk5xw/J0rSf81YEbMT1oH35V7ALXPUmclUVba1u1A6z1dPuo/+hQ==-10000");
}
END_TEST

START_TEST(pieces_give_the_checksum_of_the_whole)
{
	const struct span whole = long_input();
	struct checksum expected;
	struct checksum actual;
	checksum_of(rows[_i].algorithm, whole, &expected);
	struct checksum_stream *const stream = checksum_stream_new(rows[_i].algorithm);
	/* later rounds prove that a result resets the stream */
	for (unsigned step = 1; step < 6; step++) {
		checksum_stream_add(stream, span_of(NULL, 0));
		for (size_t at = 0, piece = 1; at < whole.len;
			at += piece, piece = piece * step % 4099 + 1)
			checksum_stream_add(stream, span_slice(whole, at, piece));
		checksum_stream_result(stream, &actual);
		ck_assert(checksum_equal(&actual, &expected));
	}
	checksum_stream_free(stream);
	checksum_stream_free(NULL);
}
END_TEST

static void check_combination(enum checksum_algorithm algorithm, struct span whole, size_t at)
{
	struct checksum first;
	struct checksum second;
	struct checksum expected;
	const struct span rest = span_slice(whole, at, whole.len);
	checksum_of(algorithm, whole, &expected);
	checksum_of(algorithm, span_slice(whole, 0, at), &first);
	checksum_of(algorithm, rest, &second);
	checksum_combine(&first, &second, rest.len);
	ck_assert_msg(checksum_equal(&first, &expected), "%s of %zu bytes cut at %zu",
		checksum_name(algorithm), whole.len, at);
}

START_TEST(crcs_combine)
{
	if (!checksum_combines(rows[_i].algorithm))
		return;
	const struct span input = long_input();
	for (size_t at = 0; at <= 300; at++)
		check_combination(rows[_i].algorithm, span_slice(input, at, 300), at);
	for (size_t at = 0; at <= input.len; at += 7777)
		check_combination(rows[_i].algorithm, input, at);
}
END_TEST

/* 2^40 zero bytes and some more, too many to compute: two ways to combine them must agree. */
START_TEST(long_seconds_combine)
{
	if (!checksum_combines(rows[_i].algorithm))
		return;
	struct checksum zeros; /* doubled again and again */
	struct checksum at_once;
	checksum_of(rows[_i].algorithm, span_of("", 1), &zeros);
	for (int doubling = 0; doubling < 40; doubling++) {
		const struct checksum half = zeros;
		checksum_combine(&zeros, &half, UINT64_C(1) << doubling);
	}
	struct checksum prefixed;
	checksum_of(rows[_i].algorithm, span_text("123456789"), &prefixed);
	at_once = prefixed;
	checksum_combine(&at_once, &zeros, UINT64_C(1) << 40);
	const uint64_t nearly = (UINT64_C(1) << 40) - 1; /* in two uneven pieces */
	struct checksum all_but_one;
	struct checksum one;
	checksum_of(rows[_i].algorithm, span_of("", 1), &one);
	checksum_of(rows[_i].algorithm, span_of(NULL, 0), &all_but_one);
	struct checksum power = one;
	for (int bit = 0; bit < 40; bit++) {
		checksum_combine(&all_but_one, &power, UINT64_C(1) << bit);
		const struct checksum same = power;
		checksum_combine(&power, &same, UINT64_C(1) << bit);
	}
	checksum_combine(&prefixed, &all_but_one, nearly);
	checksum_combine(&prefixed, &one, 1);
	ck_assert(checksum_equal(&prefixed, &at_once));
}
END_TEST

Suite *test_checksum_suite(void);
Suite *test_checksum_suite(void)
{
	Suite *const suite = suite_create("checksum");
	TCase *const tc = tcase_create("all");
	tcase_add_loop_test(tc, published_vectors, 0, ROWS);
	tcase_add_test(tc, crc64_of_a_run);
	tcase_add_loop_test(tc, names_lead_to_the_algorithm, 0, ROWS);
	tcase_add_test(tc, other_names_lead_nowhere);
	tcase_add_loop_test(tc, text_parses_back, 0, ROWS);
	tcase_add_test(tc, equal_bytes_of_two_algorithms_differ);
	tcase_add_test(tc, composite_text_has_the_parts);
	tcase_add_loop_test(tc, pieces_give_the_checksum_of_the_whole, 0, ROWS);
	tcase_add_loop_test(tc, crcs_combine, 0, ROWS);
	tcase_add_loop_test(tc, long_seconds_combine, 0, ROWS);
	suite_add_tcase(suite, tc);
	return suite;
}
