/* The parts of a journal's files: each comes back as it was written, a changed bit is found, and a
 * record is tied to all records before it. */
#include "storage/journal/journal_format.h"

#include <string.h>

#include "base/encode.h"
#include "base/little_endian.h"
#include "tests/unit/unit.h"

enum {
	VERSION_AT = 8,
	SUM_AT = JOURNAL_HEADER_BYTES - 8,
	HEX_BYTES = 2 * JOURNAL_HEADER_BYTES + 1
};

static const struct journal_header header = {
	.store = {0xa0, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7},
	.life = 0x0102030405060708,
	.number = 0x1122334455667788,
	.schema = 0x31323334,
	.made_ms = 0x5152535455565758,
	.point = {.change = 0x6162636465666768, .digest = {{0xd0, 0xd1, 0xd2}}},
	.is_anew = true,
};
static const struct digest128 before = {{0xb0, 0xb1}};
static const char rows_text[] = "the rows of a change";

static struct span rows(void)
{
	return span_text(rows_text);
}

static struct journal_record record_of(struct span some_rows)
{
	return (struct journal_record){.bytes = (uint32_t)some_rows.len,
		.change = 0x0102030405060708,
		.sums = 0x1112131415161718,
		.made_ms = 0x2122232425262728};
}

static void expect_hex(const uint8_t *bytes, size_t len, const char *hex)
{
	char got[HEX_BYTES];
	ck_assert_uint_lt(2 * len, sizeof got);
	encode_hex(span_of(bytes, len), got);
	ck_assert_str_eq(got, hex);
}

static void expect_same_header(const struct journal_header *a, const struct journal_header *b)
{
	ck_assert_int_eq(memcmp(a->store, b->store, sizeof a->store), 0);
	ck_assert_uint_eq(a->life, b->life);
	ck_assert_uint_eq(a->number, b->number);
	ck_assert_uint_eq(a->schema, b->schema);
	ck_assert_int_eq(a->made_ms, b->made_ms);
	ck_assert(journal_point_equal(&a->point, &b->point));
	ck_assert_int_eq(a->is_anew, b->is_anew);
}

static const struct header_case {
	enum journal_kind kind;
	bool is_anew;
} header_cases[] = {
	{JOURNAL_LOG, false},
	{JOURNAL_LOG, true},
	{JOURNAL_SNAPSHOT, false},
};

START_TEST(a_header_comes_back)
{
	const struct header_case *one = &header_cases[_i];
	struct journal_header wanted = header;
	struct journal_header got;
	uint8_t bytes[JOURNAL_HEADER_BYTES];
	struct error err = {0};
	wanted.is_anew = one->is_anew;
	journal_header_encode(one->kind, &wanted, bytes);
	memset(&got, 0x5a, sizeof got);
	ck_assert_int_eq(journal_header_decode(one->kind, bytes, &got, &err), 0);
	expect_same_header(&got, &wanted);
}
END_TEST

START_TEST(numbers_of_a_header_may_be_negative)
{
	struct journal_header wanted = header;
	struct journal_header got;
	uint8_t bytes[JOURNAL_HEADER_BYTES];
	struct error err = {0};
	wanted.made_ms = -1;
	wanted.point.change = INT64_MIN;
	journal_header_encode(JOURNAL_LOG, &wanted, bytes);
	ck_assert_int_eq(journal_header_decode(JOURNAL_LOG, bytes, &got, &err), 0);
	expect_same_header(&got, &wanted);
}
END_TEST

/* Files of released versions hold these bytes. */
START_TEST(the_files_have_these_bytes)
{
	uint8_t bytes[JOURNAL_HEADER_BYTES];
	journal_header_encode(JOURNAL_SNAPSHOT, &header, bytes);
	ck_assert_int_eq(memcmp(bytes, "DBKTSNAP", 8), 0);
	journal_header_encode(JOURNAL_LOG, &header, bytes);
	expect_hex(bytes, SUM_AT,
		"44424b544a524e4c"
		"0100"
		"0100"
		"34333231"
		"a0a1a2a3a4a5a6a70000000000000000"
		"0807060504030201"
		"6867666564636261"
		"d0d1d200000000000000000000000000"
		"8877665544332211"
		"5857565554535251"
		"0100000000000000");
	struct journal_record record = record_of(rows());
	journal_record_encode(&record, &before, rows(), bytes);
	expect_hex(bytes, JOURNAL_RECORD_BYTES - sizeof record.digest,
		"44424a52"
		"14000000"
		"0807060504030201"
		"1817161514131211"
		"2827262524232221");
	ck_assert_int_eq(memcmp(bytes + 32, record.digest.bytes, sizeof record.digest), 0);
	journal_frame_encode(
		&(const struct journal_frame){.stored = 1, .rows = 2, .sum = 3}, bytes);
	expect_hex(bytes, JOURNAL_FRAME_BYTES, "01000000020000000300000000000000");
	journal_tail_encode(&(const struct journal_tail){.frames = 1, .rows = 2, .sums = 3}, bytes);
	expect_hex(bytes, 24, "010000000000000002000000000000000300000000000000");
}
END_TEST

START_TEST(each_flipped_bit_of_a_header_is_found)
{
	uint8_t bytes[JOURNAL_HEADER_BYTES];
	struct journal_header got;
	journal_header_encode(JOURNAL_LOG, &header, bytes);
	for (size_t bit = 0; bit < 8 * sizeof bytes; bit++) {
		struct error err = {0};
		bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
		ck_assert_int_eq(journal_header_decode(JOURNAL_LOG, bytes, &got, &err), -1);
		ck_assert_int_eq(err.kind, ERROR_CORRUPT);
		bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
}
END_TEST

START_TEST(a_header_of_the_other_kind_is_corrupt)
{
	uint8_t bytes[JOURNAL_HEADER_BYTES];
	struct journal_header got;
	struct error err = {0};
	journal_header_encode(JOURNAL_LOG, &header, bytes);
	ck_assert_int_eq(journal_header_decode(JOURNAL_SNAPSHOT, bytes, &got, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_CORRUPT);
	journal_header_encode(JOURNAL_SNAPSHOT, &header, bytes);
	ck_assert_int_eq(journal_header_decode(JOURNAL_LOG, bytes, &got, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_CORRUPT);
}
END_TEST

START_TEST(a_header_of_a_newer_program_is_unsupported)
{
	uint8_t bytes[JOURNAL_HEADER_BYTES];
	struct journal_header got;
	struct error err = {0};
	journal_header_encode(JOURNAL_LOG, &header, bytes);
	little_endian_put(bytes + VERSION_AT, 2, 2);
	little_endian_put(bytes + SUM_AT, xxh3_64(span_of(bytes, SUM_AT)), 8);
	ck_assert_int_eq(journal_header_decode(JOURNAL_LOG, bytes, &got, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_UNSUPPORTED);
}
END_TEST

START_TEST(points_have_a_number_and_a_digest)
{
	struct journal_point other = header.point;
	ck_assert(journal_point_equal(&header.point, &other));
	other.change++;
	ck_assert(!journal_point_equal(&header.point, &other));
	other = header.point;
	other.digest.bytes[15] ^= 1;
	ck_assert(!journal_point_equal(&header.point, &other));
}
END_TEST

static void expect_record_comes_back(struct span some_rows)
{
	struct journal_record record = record_of(some_rows);
	struct journal_record got;
	uint8_t bytes[JOURNAL_RECORD_BYTES];
	journal_record_encode(&record, &before, some_rows, bytes);
	memset(&got, 0x5a, sizeof got);
	ck_assert(journal_record_decode(bytes, &got));
	ck_assert_uint_eq(got.bytes, some_rows.len);
	ck_assert_int_eq(got.change, record.change);
	ck_assert_uint_eq(got.sums, record.sums);
	ck_assert_int_eq(got.made_ms, record.made_ms);
	ck_assert(digest128_equal(&got.digest, &record.digest));
	ck_assert(journal_record_holds(&got, &before, some_rows));
}

START_TEST(a_record_comes_back)
{
	expect_record_comes_back(rows());
	expect_record_comes_back(span_text(""));
}
END_TEST

/* In the head of a record; those of the first word mean that it is none. */
START_TEST(each_flipped_bit_of_a_record_is_found)
{
	struct journal_record record = record_of(rows());
	struct journal_record got;
	uint8_t bytes[JOURNAL_RECORD_BYTES];
	journal_record_encode(&record, &before, rows(), bytes);
	for (size_t bit = 0; bit < 8 * sizeof bytes; bit++) {
		bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
		const bool is_record = journal_record_decode(bytes, &got);
		ck_assert_int_eq(is_record, bit >= 32);
		ck_assert(!is_record || !journal_record_holds(&got, &before, rows()));
		bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
}
END_TEST

/* Computes the digest of a record that differs from the usual one and sees that it differs too, and
 * that the usual one does not hold for it. */
static void expect_other_digest(
	struct journal_record other, const struct digest128 *other_before, struct span other_rows)
{
	uint8_t bytes[JOURNAL_RECORD_BYTES];
	struct journal_record usual = record_of(rows());
	journal_record_encode(&usual, &before, rows(), bytes);
	other.digest = usual.digest;
	ck_assert(!journal_record_holds(&other, other_before, other_rows));
	journal_record_encode(&other, other_before, other_rows, bytes);
	ck_assert(!digest128_equal(&other.digest, &usual.digest));
	ck_assert(journal_record_holds(&other, other_before, other_rows));
}

START_TEST(a_digest_depends_on_the_digest_before)
{
	for (size_t i = 0; i < sizeof before.bytes; i++) {
		struct digest128 other = before;
		other.bytes[i] ^= 1;
		expect_other_digest(record_of(rows()), &other, rows());
	}
}
END_TEST

START_TEST(a_digest_depends_on_each_field)
{
	const struct journal_record usual = record_of(rows());
	struct journal_record other = usual;
	other.change++;
	expect_other_digest(other, &before, rows());
	other = usual;
	other.sums++;
	expect_other_digest(other, &before, rows());
	other = usual;
	other.made_ms++;
	expect_other_digest(other, &before, rows());
	other = usual;
	other.digest = header.point.digest;
	ck_assert(!journal_record_holds(&other, &before, rows()));
}
END_TEST

START_TEST(a_digest_depends_on_the_rows)
{
	char other[sizeof rows_text];
	const size_t len = strlen(rows_text);
	memcpy(other, rows_text, sizeof other);
	for (size_t i = 0; i < len; i++) {
		other[i] ^= 1;
		expect_other_digest(record_of(rows()), &before, span_text(other));
		other[i] ^= 1;
	}
	const struct span shorter = span_of(other, len - 1);
	expect_other_digest(record_of(shorter), &before, shorter);
	expect_other_digest(record_of(span_text("")), &before, span_text(""));
	/* of as many bytes as before in the head, but not in the rows */
	struct journal_record record = record_of(rows());
	uint8_t bytes[JOURNAL_RECORD_BYTES];
	journal_record_encode(&record, &before, rows(), bytes);
	ck_assert(!journal_record_holds(&record, &before, shorter));
	record.bytes--;
	ck_assert(!journal_record_holds(&record, &before, rows()));
}
END_TEST

START_TEST(a_frame_comes_back)
{
	const struct journal_frame frame = {
		.stored = 0xfedcba98, .rows = 0x89abcdef, .sum = 0xf1f2f3f4f5f6f7f8};
	struct journal_frame got;
	uint8_t bytes[JOURNAL_FRAME_BYTES];
	journal_frame_encode(&frame, bytes);
	journal_frame_decode(bytes, &got);
	ck_assert_uint_eq(got.stored, frame.stored);
	ck_assert_uint_eq(got.rows, frame.rows);
	ck_assert_uint_eq(got.sum, frame.sum);
}
END_TEST

START_TEST(a_tail_comes_back_and_each_flipped_bit_is_found)
{
	const struct journal_tail tail = {.frames = 0xf1f2f3f4f5f6f7f8,
		.rows = 0x0102030405060708,
		.sums = 0xe1e2e3e4e5e6e7e8};
	struct journal_tail got;
	uint8_t bytes[JOURNAL_TAIL_BYTES];
	journal_tail_encode(&tail, bytes);
	ck_assert(journal_tail_decode(bytes, &got));
	ck_assert_uint_eq(got.frames, tail.frames);
	ck_assert_uint_eq(got.rows, tail.rows);
	ck_assert_uint_eq(got.sums, tail.sums);
	for (size_t bit = 0; bit < 8 * sizeof bytes; bit++) {
		bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
		ck_assert(!journal_tail_decode(bytes, &got));
		bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
}
END_TEST

static const struct name_case {
	enum journal_kind kind;
	uint64_t number;
	const char *name;
} name_cases[] = {
	{JOURNAL_LOG, 0, "0000000000000000.log"},
	{JOURNAL_LOG, 0x1a, "000000000000001a.log"},
	{JOURNAL_LOG, UINT64_MAX, "ffffffffffffffff.log"},
	{JOURNAL_SNAPSHOT, 0x0123456789abcdef, "0123456789abcdef.snapshot"},
	{JOURNAL_SNAPSHOT, UINT64_MAX, "ffffffffffffffff.snapshot"},
};

START_TEST(names_print_and_parse)
{
	const struct name_case *one = &name_cases[_i];
	char name[JOURNAL_NAME_BYTES];
	enum journal_kind kind;
	uint64_t number;
	journal_name_print(one->kind, one->number, name);
	ck_assert_str_eq(name, one->name);
	ck_assert(journal_name_parse(name, &kind, &number));
	ck_assert_int_eq(kind, one->kind);
	ck_assert_uint_eq(number, one->number);
}
END_TEST

static const char *const other_names[] = {
	"",
	"1a",
	"1a.log",
	".log",
	"000000000000001a",
	"000000000000001a.",
	"000000000000001a.lo",
	"000000000000001a.logs",
	"000000000000001a.log.tmp",
	"000000000000001a.snapshot.tmp",
	"000000000000001a.snapshots",
	"000000000000001a.snap",
	"000000000000001a.LOG",
	"000000000000001A.log",
	"00000000000001a.log",
	"0000000000000001a.log",
	"00000000000000001.log",
	"0x0000000000001a.log",
	" 00000000000001a.log",
	"-00000000000001a.log",
	"00000000000000g1.log",
	"./00000000000001.log",
};

START_TEST(other_names_are_refused)
{
	enum journal_kind kind;
	uint64_t number;
	ck_assert_msg(!journal_name_parse(other_names[_i], &kind, &number), "%s", other_names[_i]);
}
END_TEST

static TCase *test_heads(void)
{
	TCase *tests = tcase_create("header");
	tcase_add_loop_test(
		tests, a_header_comes_back, 0, sizeof header_cases / sizeof header_cases[0]);
	tcase_add_test(tests, numbers_of_a_header_may_be_negative);
	tcase_add_test(tests, the_files_have_these_bytes);
	tcase_add_test(tests, each_flipped_bit_of_a_header_is_found);
	tcase_add_test(tests, a_header_of_the_other_kind_is_corrupt);
	tcase_add_test(tests, a_header_of_a_newer_program_is_unsupported);
	tcase_add_test(tests, points_have_a_number_and_a_digest);
	return tests;
}

static TCase *test_records(void)
{
	TCase *tests = tcase_create("record");
	tcase_add_test(tests, a_record_comes_back);
	tcase_add_test(tests, each_flipped_bit_of_a_record_is_found);
	tcase_add_test(tests, a_digest_depends_on_the_digest_before);
	tcase_add_test(tests, a_digest_depends_on_each_field);
	tcase_add_test(tests, a_digest_depends_on_the_rows);
	tcase_add_test(tests, a_frame_comes_back);
	tcase_add_test(tests, a_tail_comes_back_and_each_flipped_bit_is_found);
	return tests;
}

static TCase *test_names(void)
{
	TCase *tests = tcase_create("name");
	tcase_add_loop_test(
		tests, names_print_and_parse, 0, sizeof name_cases / sizeof name_cases[0]);
	tcase_add_loop_test(
		tests, other_names_are_refused, 0, sizeof other_names / sizeof other_names[0]);
	return tests;
}

Suite *test_journal_format_suite(void);
Suite *test_journal_format_suite(void)
{
	Suite *suite = suite_create("journal_format");
	suite_add_tcase(suite, test_heads());
	suite_add_tcase(suite, test_records());
	suite_add_tcase(suite, test_names());
	return suite;
}
