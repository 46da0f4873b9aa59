#include "chunker/gear.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest/digest.h"
#include "base/encode.h"
#include "base/memory.h"
#include "chunker/gear_table.h"
#include "tests/unit/chunker/vectors.h"

Suite *test_gear_suite(void);

enum { ENDS_MAX = 4096 };

struct ends {
	size_t count;
	size_t at[ENDS_MAX];
};

static void ends_add(struct ends *ends, size_t at)
{
	if (ends->count == ENDS_MAX)
		ck_abort_msg("too many chunks");
	ends->at[ends->count++] = at;
}

/* The ends that gear finds in pushes of `piece` bytes. The end of the content closes the last
 * chunk. */
static struct ends cut(struct span content, size_t piece)
{
	struct ends ends = {0};
	struct gear gear;
	gear_init(&gear);
	for (size_t at = 0; at < content.len;) {
		const struct span fed = span_slice(content, at, piece);
		const size_t end = gear_next(&gear, fed);
		at += end != 0 ? end : fed.len;
		if (end == 0)
			continue;
		ck_assert_uint_le(end, fed.len);
		ends_add(&ends, at);
	}
	if (gear.length > 0)
		ends_add(&ends, content.len);
	return ends;
}

/* The definition, without any shortcut. */
static struct ends cut_plainly(struct span content)
{
	struct ends ends = {0};
	uint64_t hash = 0;
	size_t length = 0;
	for (size_t i = 0; i < content.len; i++) {
		hash = (hash << 1) + gear_table[content.data[i]];
		length++;
		if ((length >= 8192 && (hash & 0xffff000000000000) == 0) || length == 131072) {
			ends_add(&ends, i + 1);
			hash = 0;
			length = 0;
		}
	}
	if (length > 0)
		ends_add(&ends, content.len);
	return ends;
}

static void expect_same(const struct ends *got, const struct ends *expected)
{
	for (size_t i = 0; i < got->count && i < expected->count; i++)
		ck_assert_uint_eq(got->at[i], expected->at[i]);
	ck_assert_uint_eq(got->count, expected->count);
}

START_TEST(table_is_the_reference_table)
{
	struct buffer file = vectors_read("gear-table.txt");
	const char *text = buffer_text(&file);
	for (size_t i = 0; i < 256; i++) {
		char *end;
		ck_assert_uint_eq(gear_table[i], strtoull(text, &end, 16));
		ck_assert_ptr_ne(end, text);
		text = end;
	}
	buffer_release(&file);
}
END_TEST

START_TEST(table_has_the_published_checksums)
{
	uint8_t bytes[256 * 8];
	uint64_t sum = 0;
	uint64_t combined = 0;
	for (size_t i = 0; i < 256; i++) {
		sum += gear_table[i];
		combined ^= gear_table[i];
		for (size_t k = 0; k < 8; k++)
			bytes[8 * i + k] = (uint8_t)(gear_table[i] >> (8 * k));
	}
	ck_assert_uint_eq(sum, 0xc1acb37ef35c570a);
	ck_assert_uint_eq(combined, 0x6aa26c5ca5f6cbfc);
	uint8_t digest[SHA256_BYTES];
	char text[2 * SHA256_BYTES + 1];
	sha256(span_of(bytes, sizeof(bytes)), digest);
	encode_hex(span_of(digest, sizeof(digest)), text);
	ck_assert_str_eq(text, "e1d3936666d7ae7a977c958e9afcc75f90aaca758ce5fbe4ece61dffefe1912c");
}
END_TEST

/* The hash with another mask and without limits, as the table's own library tests it. */
START_TEST(table_gives_the_bare_hash_vector)
{
	static const struct {
		size_t size;
		uint64_t hash;
	} first[] = {
		{3598, 0x033220f080ac5f77}, {3995, 0xd06b22f324ac5f28}, {4708, 0xa3a324f81808429c}};
	uint32_t state = 0xbecd17f & 0xffffff;
	uint64_t hash = 0;
	size_t size = 0, matches = 0, last_end = 0, last_size = 0;
	uint64_t last_hash = 0;
	for (size_t i = 0; i < 100000; i++) {
		if (i % 3 == 0)
			state = (state * 1111 + 12345) & 0xffffff;
		hash = (hash << 1) + gear_table[(uint8_t)(state >> (i % 3 * 8))];
		size++;
		if ((hash & 0x0000d90003530000) != 0)
			continue;
		if (matches < 3) {
			ck_assert_uint_eq(size, first[matches].size);
			ck_assert_uint_eq(hash, first[matches].hash);
		}
		matches++;
		last_end = i + 1;
		last_size = size;
		last_hash = hash;
		hash = 0;
		size = 0;
	}
	ck_assert_uint_eq(matches, 44);
	ck_assert_uint_eq(last_end, 98336);
	ck_assert_uint_eq(last_size, 969);
	ck_assert_uint_eq(last_hash, 0x7770042d140c7472);
}
END_TEST

static const size_t pieces[] = {
	1, 37, 255, 4096, 8191, 8192, 8193, 65536, 131072, 131073, SIZE_MAX};
enum { PIECES = sizeof(pieces) / sizeof(*pieces) };

static const size_t seed0_ends[] = {84493, 134421, 144853, 243318, 271793, 336457, 467529, 494581,
	582000, 596735, 616815, 653164, 678202, 724510, 815591, 827760, 958832, 991092, 1000000};
static const size_t seed1_ends[] = {25125, 104497, 235569, 256000};

static void expect_ends(const struct ends *got, const size_t *expected, size_t count)
{
	ck_assert_uint_eq(got->count, count);
	for (size_t i = 0; i < count; i++)
		ck_assert_uint_eq(got->at[i], expected[i]);
}

START_TEST(random_content_is_cut_alike_in_pieces_of_any_size)
{
	uint8_t *const seed0 = vectors_splitmix(0, 1000000);
	uint8_t *const seed1 = vectors_splitmix(1, 256000);
	static const uint8_t seed1_begins[] = {0xc1, 0x5c, 0x02, 0x89, 0xec, 0x2d, 0x0a, 0x91};
	ck_assert_mem_eq(seed1, seed1_begins, sizeof(seed1_begins));
	const struct ends ends0 = cut(span_of(seed0, 1000000), pieces[_i]);
	const struct ends ends1 = cut(span_of(seed1, 256000), pieces[_i]);
	expect_ends(&ends0, seed0_ends, sizeof(seed0_ends) / sizeof(*seed0_ends));
	expect_ends(&ends1, seed1_ends, sizeof(seed1_ends) / sizeof(*seed1_ends));
	free(seed0);
	free(seed1);
}
END_TEST

START_TEST(content_without_cuts_ends_at_the_maximum)
{
	static const size_t long_ends[] = {
		131072, 262144, 393216, 524288, 655360, 786432, 917504, 1000000};
	static const size_t short_ends[] = {131072, 200000};
	uint8_t *const constant = vectors_linear(0, 59, 1000000);
	uint8_t *const sevens = vectors_linear(7, 13, 200000);
	uint8_t *const thirteens = vectors_linear(13, 37, 1000000);
	const struct ends ends[] = {
		cut(span_of(constant, 1000000), pieces[_i]),
		cut(span_of(sevens, 200000), pieces[_i]),
		cut(span_of(thirteens, 1000000), pieces[_i]),
	};
	expect_ends(&ends[0], long_ends, 8);
	expect_ends(&ends[1], short_ends, 2);
	expect_ends(&ends[2], long_ends, 8);
	free(constant);
	free(sevens);
	free(thirteens);
}
END_TEST

/* The pattern and `padding` zero bytes, repeated. */
static void expect_pattern_ends(const uint8_t pattern[128], size_t padding, uint8_t probe,
	struct span ends_text, size_t piece)
{
	enum { CONTENT_BYTES = 65536, PROBE_AT = 11111 };
	uint8_t *const content = memory_new(CONTENT_BYTES);
	for (size_t i = 0; i < CONTENT_BYTES; i++) {
		const size_t at = i % (128 + padding);
		content[i] = at < 128 ? pattern[at] : 0;
	}
	ck_assert_uint_eq(content[PROBE_AT], probe);
	const struct ends got = cut(span_of(content, CONTENT_BYTES), piece);
	size_t i = 0;
	for (struct span end; span_split(&ends_text, ',', &end); i++) {
		ck_assert_uint_lt(i, got.count);
		ck_assert_uint_eq(got.at[i], vectors_number(end));
	}
	ck_assert_uint_eq(i, got.count);
	free(content);
}

START_TEST(padded_patterns_are_cut_as_in_the_vectors)
{
	struct buffer file = vectors_read("chunk-vectors.txt");
	struct span rest = buffer_span(&file);
	uint8_t pattern[128];
	size_t cases = 0;
	for (struct span line; vectors_line(&rest, &line);) {
		struct span first, second;
		if (span_starts(line, span_text("#")) || !span_split(&line, ' ', &first))
			continue;
		if (span_equal_text(first, "base")) {
			ck_assert(decode_hex(line, pattern, sizeof(pattern)));
			continue;
		}
		ck_assert(span_split(&line, ' ', &second));
		expect_pattern_ends(pattern, vectors_number(first), (uint8_t)vectors_number(second),
			line, pieces[_i]);
		cases++;
	}
	ck_assert_uint_eq(cases, 128);
	buffer_release(&file);
}
END_TEST

/* The content is long enough for cuts in every part of the fast scan, near and far. */
START_TEST(long_content_is_cut_as_the_definition_says)
{
	enum { LEN = 16 << 20 };
	uint8_t *const content = vectors_splitmix(_i, LEN);
	const struct ends expected = cut_plainly(span_of(content, LEN));
	ck_assert_uint_gt(expected.count, 200);
	for (size_t p = 3; p < PIECES; p++) {
		const struct ends got = cut(span_of(content, LEN), pieces[p]);
		expect_same(&got, &expected);
	}
	free(content);
}
END_TEST

/* In runs of two byte values the cut condition holds often: many times in one chunk, and sometimes
 * at neighbouring bytes. */
START_TEST(skewed_content_is_cut_as_the_definition_says)
{
	enum { LEN = 4 << 20 };
	uint8_t *const content = vectors_splitmix(_i, LEN);
	for (size_t i = 0; i < LEN; i++)
		content[i] = content[i] < 8 ? (uint8_t)(i >> 12) : 0x11;
	const struct ends expected = cut_plainly(span_of(content, LEN));
	for (size_t p = 1; p < PIECES; p++) {
		const struct ends got = cut(span_of(content, LEN), pieces[p]);
		expect_same(&got, &expected);
	}
	free(content);
}
END_TEST

START_TEST(short_content_has_no_cut)
{
	uint8_t *const content = vectors_splitmix(1, CHUNK_MIN_BYTES - 1);
	struct gear gear;
	gear_init(&gear);
	ck_assert_uint_eq(gear_next(&gear, span_of(content, 0)), 0);
	ck_assert_uint_eq(gear.length, 0);
	ck_assert_uint_eq(gear_next(&gear, span_of(content, CHUNK_MIN_BYTES - 1)), 0);
	ck_assert_uint_eq(gear.length, CHUNK_MIN_BYTES - 1);
	free(content);
}
END_TEST

Suite *test_gear_suite(void)
{
	Suite *const suite = suite_create("gear");
	TCase *const tests = tcase_create("cuts");
	tcase_set_timeout(tests, 60);
	tcase_add_test(tests, table_is_the_reference_table);
	tcase_add_test(tests, table_has_the_published_checksums);
	tcase_add_test(tests, table_gives_the_bare_hash_vector);
	tcase_add_loop_test(tests, random_content_is_cut_alike_in_pieces_of_any_size, 0, PIECES);
	tcase_add_loop_test(tests, content_without_cuts_ends_at_the_maximum, 0, PIECES);
	tcase_add_loop_test(tests, padded_patterns_are_cut_as_in_the_vectors, 0, PIECES);
	tcase_add_loop_test(tests, long_content_is_cut_as_the_definition_says, 10, 12);
	tcase_add_loop_test(tests, skewed_content_is_cut_as_the_definition_says, 0, 4);
	tcase_add_test(tests, short_content_has_no_cut);
	suite_add_tcase(suite, tests);
	return suite;
}
