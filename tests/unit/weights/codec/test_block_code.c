#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

#include "base/digest/xxh3.h"
#include "base/memory.h"
#include "tests/unit/weights/weights_fixture.h"
#include "weights/codec/block_header.h"
#include "weights/codec/plane_code.h"

unit_suite_fn test_block_code_suite;

static const enum dtype dtypes[] = {DTYPE_BF16, DTYPE_F16, DTYPE_F8_E4M3, DTYPE_F8_E5M2,
	DTYPE_F8_E4M3FNUZ, DTYPE_F8_E5M2FNUZ, DTYPE_F8_E8M0, DTYPE_U8, DTYPE_F4, DTYPE_BOOL,
	DTYPE_I16, DTYPE_I32, DTYPE_F32, DTYPE_F64, DTYPE_C64};
enum { DTYPES = sizeof(dtypes) / sizeof(*dtypes), ULP_DTYPES = 6 };

static const enum block_code_path paths[] = {
	BLOCK_CODE_PORTABLE, BLOCK_CODE_AVX2, BLOCK_CODE_AVX512};
enum { PATHS = sizeof(paths) / sizeof(*paths) };

static struct block_code_context *contexts[PATHS]; /* NULL if the processor lacks the path */

static void set_up(void)
{
	for (size_t i = 0; i < PATHS; i++) {
		contexts[i] = block_code_context_new();
		if (!block_code_context_use(contexts[i], paths[i])) {
			block_code_context_free(contexts[i]);
			contexts[i] = NULL;
		}
	}
	ck_assert_ptr_nonnull(contexts[0]);
}

static void tear_down(void)
{
	for (size_t i = 0; i < PATHS; i++)
		block_code_context_free(contexts[i]);
}

/* Two byte arrays in memory of exactly their size, so that a sanitizer sees an access behind them.
 * `shift` makes the addresses odd. */
struct pair {
	enum dtype dtype;
	size_t len;
	size_t shift;
	uint8_t *base_memory;
	uint8_t *next_memory;
	uint8_t *base;
	uint8_t *next;
};

static struct pair pair_new(enum dtype dtype, size_t words, size_t shift)
{
	struct pair pair = {.dtype = dtype, .len = words * block_word_bytes(dtype), .shift = shift};
	pair.base_memory = memory_new(pair.len + shift);
	pair.next_memory = memory_new(pair.len + shift);
	pair.base = pair.base_memory + shift;
	pair.next = pair.next_memory + shift;
	return pair;
}

static void pair_free(struct pair *pair)
{
	free(pair->base_memory);
	free(pair->next_memory);
}

static uint64_t random_state;

static uint64_t next_random(void)
{
	return fixture_random64(&random_state);
}

/* Words with exponents like those of weights: each step down has half as many. */
static void fill_weights(struct pair *pair)
{
	const size_t width = block_word_bytes(pair->dtype);
	const struct ulp_format format = ulp_format_of(pair->dtype);
	for (size_t i = 0; i < pair->len; i += width) {
		uint64_t word = next_random();
		if (format.width != 0) {
			const unsigned exponent = (unsigned)format.mask / 2 -
				(unsigned)__builtin_ctzll(next_random() | 1 << 14) %
					(format.mask / 2u);
			const uint64_t sign = word >> 40 & 1;
			word = sign << (8 * width - 1) | (uint64_t)exponent << format.shift |
				(word & ((1u << format.shift) - 1));
		}
		memcpy(pair->base + i, &word, width);
	}
	if (pair->len != 0)
		memcpy(pair->next, pair->base, pair->len);
}

/* Changes about `share` of 65536 words, most of them by a small step. */
static void change(struct pair *pair, unsigned share)
{
	const size_t width = block_word_bytes(pair->dtype);
	for (size_t i = 0; i < pair->len; i += width) {
		uint64_t word = 0;
		const uint64_t dice = next_random();
		if ((dice & 65535) >= share)
			continue;
		memcpy(&word, pair->base + i, width);
		word += (dice >> 16 & 7) != 0 ? 1 : dice >> 20;
		memcpy(pair->next + i, &word, width);
	}
}

static void encode(struct block_code_context *context, const struct pair *pair, struct buffer *out)
{
	buffer_reset(out);
	block_code_encode(context, pair->dtype, span_of(pair->base, pair->len),
		span_of(pair->next, pair->len), out, NULL);
}

static int decode(struct block_code_context *context, const struct pair *pair, struct span block,
	uint8_t *into, struct error *err)
{
	struct block_code_facts facts;
	if (block_code_parse(block, pair->dtype, pair->len, &facts, err) != 0)
		return -1;
	return block_code_decode(
		context, pair->dtype, block, span_of(pair->base, pair->len), into, err);
}

static void expect_decoded_in_place(struct block_code_context *context, const struct pair *pair,
	struct span block, uint8_t *into)
{
	struct pair same = *pair;
	struct error err;
	if (pair->len > 0)
		memcpy(into, pair->base, pair->len);
	same.base = into;
	ck_assert_msg(decode(context, &same, block, into, &err) == 0, "%s", err.text);
	ck_assert(pair->len == 0 || memcmp(into, pair->next, pair->len) == 0);
}

/* Every path must make the same block and decode it to the result. */
static void expect_round_trip(const struct pair *pair)
{
	struct buffer first;
	struct buffer again;
	struct error err;
	buffer_init(&first, 16 << 20);
	buffer_init(&again, 16 << 20);
	encode(contexts[0], pair, &first);
	for (size_t i = 0; i < PATHS; i++) {
		if (contexts[i] == NULL)
			continue;
		uint8_t *const memory = memory_new(pair->len + pair->shift);
		encode(contexts[i], pair, &again);
		ck_assert(span_equal(buffer_span(&first), buffer_span(&again)));
		ck_assert_msg(decode(contexts[i], pair, buffer_span(&again), memory + pair->shift,
				      &err) == 0,
			"%s", err.text);
		ck_assert(
			pair->len == 0 || memcmp(memory + pair->shift, pair->next, pair->len) == 0);
		expect_decoded_in_place(
			contexts[i], pair, buffer_span(&again), memory + pair->shift);
		free(memory);
	}
	buffer_release(&first);
	buffer_release(&again);
}

START_TEST(every_length_round_trips)
{
	static const unsigned shares[] = {0, 655, 6000, 32768, 65536};
	random_state = 11;
	for (size_t words = 0; words <= 200; words += words < 70 ? 1 : (size_t)unit_stride(7)) {
		for (size_t share = words % (size_t)unit_stride(3);
			share < sizeof(shares) / sizeof(*shares); share += (size_t)unit_stride(3)) {
			struct pair pair = pair_new(dtypes[_i], words, words % 2);
			fill_weights(&pair);
			change(&pair, shares[share]);
			expect_round_trip(&pair);
			pair_free(&pair);
		}
	}
}
END_TEST

/* One dtype for each width of words and kind of code; other dtypes take the same paths. */
static const enum dtype block_dtypes[] = {
	DTYPE_BF16, DTYPE_F8_E4M3, DTYPE_U8, DTYPE_I16, DTYPE_F32, DTYPE_F64};

START_TEST(lengths_around_a_block_round_trip)
{
	static const size_t lengths[] = {
		BLOCK_CODE_ELEMENTS - 65, BLOCK_CODE_ELEMENTS - 1, BLOCK_CODE_ELEMENTS};
	static const unsigned shares[] = {884, 20000, 65536};
	random_state = 12;
	for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		struct pair pair = pair_new(block_dtypes[_i], lengths[i], 1);
		fill_weights(&pair);
		change(&pair, shares[i]);
		expect_round_trip(&pair);
		pair_free(&pair);
	}
}
END_TEST

/* The wide ways take 4096 words at a time and leave the rest to the portable way. */
START_TEST(lengths_around_a_stretch_round_trip)
{
	static const size_t lengths[] = {4095, 4096, 4097, 8191, 8192, 8255, 12300, 65535, 65537};
	static const unsigned shares[] = {20, 884, 6000, 65536};
	random_state = 19;
	for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		for (size_t share = (i + _i) % (size_t)unit_stride(4);
			share < sizeof(shares) / sizeof(*shares); share += (size_t)unit_stride(4)) {
			struct pair pair = pair_new(dtypes[_i], lengths[i], i % 2);
			fill_weights(&pair);
			change(&pair, shares[share]);
			expect_round_trip(&pair);
			pair_free(&pair);
		}
	}
}
END_TEST

/* Words of one class, words that come class by class, and words of every pattern. */
START_TEST(classes_full_and_empty_round_trip)
{
	enum { WORDS = 20000 };
	random_state = 20;
	for (unsigned spread = 0; spread < 3; spread++) {
		struct pair pair = pair_new(dtypes[_i], WORDS, 0);
		fill_weights(&pair);
		for (size_t i = 0; i < pair.len; i++)
			pair.base[i] = spread == 0 ? 0x3c
				: spread == 1      ? (uint8_t)(i * 7 / 64)
						   : (uint8_t)next_random();
		memcpy(pair.next, pair.base, pair.len);
		change(&pair, 2000);
		expect_round_trip(&pair);
		pair_free(&pair);
	}
}
END_TEST

START_TEST(one_change_anywhere_round_trips)
{
	enum { WORDS = 300 };
	struct pair pair = pair_new(dtypes[_i], WORDS, 1);
	random_state = 13;
	fill_weights(&pair);
	for (size_t byte = 0; byte < pair.len; byte += (size_t)unit_stride(5)) {
		pair.next[byte] ^= (uint8_t)(1u << byte % 8);
		expect_round_trip(&pair);
		pair.next[byte] = pair.base[byte];
	}
	pair_free(&pair);
}
END_TEST

/* Every pattern changes to patterns of every kind. Among them are both zeros, subnormals,
 * infinities and NaNs with every payload. */
START_TEST(every_pattern_changes_to_others)
{
	enum { PATTERNS = 65536 };
	static const uint16_t others[] = {
		0x0001, 0x8000, 0x7fff, 0xffff, 0x7f80, 0x0080, 0x8001, 0x0100, 0x5555};
	struct pair pair = pair_new(dtypes[_i], PATTERNS, 1);
	for (size_t other = 0; other < 2 * sizeof(others) / sizeof(*others);
		other += (size_t)unit_stride(3)) {
		for (unsigned word = 0; word < PATTERNS; word++) {
			const uint16_t with = others[other / 2];
			const uint16_t next =
				(uint16_t)(other % 2 == 0 ? word ^ with : word + with);
			ulp_word_store(pair.base + word * 2, 2, (uint16_t)word);
			ulp_word_store(pair.next + word * 2, 2, next);
		}
		expect_round_trip(&pair);
	}
	pair_free(&pair);
}
END_TEST

START_TEST(every_pair_of_small_words_round_trips)
{
	enum { PAIRS = 65536 };
	struct pair pair = pair_new(dtypes[_i], PAIRS, 0);
	for (size_t i = 0; i < PAIRS; i++) {
		pair.base[i] = (uint8_t)i;
		pair.next[i] = (uint8_t)(i >> 8);
	}
	expect_round_trip(&pair);
	pair_free(&pair);
}
END_TEST

START_TEST(special_numbers_keep_their_bits)
{
	static const uint16_t specials[] = {0x0000, 0x8000, 0x0001, 0x8001, 0x007f, 0x807f, 0x0080,
		0x7f7f, 0xff7f, 0x7f80, 0xff80, 0x7f81, 0x7fc0, 0x7fff, 0xffc1, 0xffff, 0x3f80,
		0xbf80};
	enum { SPECIALS = sizeof(specials) / sizeof(*specials), COPIES = 7 };
	struct pair pair = pair_new(DTYPE_BF16, (size_t)SPECIALS * SPECIALS * COPIES, 0);
	for (size_t i = 0; i < pair.len / 2; i++) {
		ulp_word_store(pair.base + 2 * i, 2, specials[i % SPECIALS]);
		ulp_word_store(pair.next + 2 * i, 2,
			specials[i % COPIES == 0 ? i / SPECIALS % SPECIALS : i % SPECIALS]);
	}
	expect_round_trip(&pair);
	pair_free(&pair);
}
END_TEST

START_TEST(places_are_a_line_without_gaps)
{
	static bool taken[65536];
	for (unsigned word = 0; word < 65536; word++) {
		const uint16_t place = ulp_word_place((uint16_t)word, 2);
		ck_assert(!taken[place]);
		taken[place] = true;
		ck_assert_uint_eq(ulp_word_place(place, 2), word);
	}
	ck_assert_int_eq(ulp_word_step(0x8000, 0x0000, 2), 1);  /* -0 to +0 */
	ck_assert_int_eq(ulp_word_step(0xbf80, 0xbf81, 2), -1); /* -1 to the next below */
	ck_assert_int_eq(ulp_word_step(0x3f80, 0x3f81, 2), 1);
	ck_assert_int_eq(ulp_word_step(0x8001, 0x0001, 2), 3);
	ck_assert_int_eq(ulp_word_step(0x80, 0x00, 1), 1);
	ck_assert_int_eq(ulp_word_step(0x00, 0x81, 1), -2);
}
END_TEST

/* The size of the result as byte planes with zstd, to compare blocks with. */
static size_t planes_size(const struct pair *pair)
{
	struct compressor *const compressor = compressor_new();
	uint8_t *const scratch = memory_new(pair->len);
	uint8_t *const into = memory_new(plane_code_bound(pair->len));
	const struct plane_code planes = {.compressor = compressor,
		.scratch = scratch,
		.width = block_word_bytes(pair->dtype)};
	const size_t size = plane_code_encode(&planes, span_of(pair->next, pair->len), into);
	compressor_free(compressor);
	free(scratch);
	free(into);
	return size;
}

static struct block_code_facts facts_of(const struct pair *pair, const struct buffer *block)
{
	struct block_code_facts facts;
	struct error err;
	ck_assert_int_eq(
		block_code_parse(buffer_span(block), pair->dtype, pair->len, &facts, &err), 0);
	ck_assert_uint_eq(facts.header_bytes + facts.payload_bytes, block->len);
	ck_assert_uint_le(facts.header_bytes, BLOCK_CODE_HEADER_MAX);
	ck_assert_uint_le(facts.payload_bytes, block_code_payload_max());
	ck_assert_uint_eq(facts.result_hash, xxh3_64(span_of(pair->next, pair->len)));
	return facts;
}

START_TEST(no_block_is_larger_than_its_planes)
{
	static const unsigned shares[] = {10, 884, 6000, 20000, 40000, 65536};
	enum { WORDS = 100000 };
	struct buffer block;
	buffer_init(&block, 16 << 20);
	random_state = 14;
	for (size_t share = 0; share < sizeof(shares) / sizeof(*shares); share++) {
		for (unsigned constant = 0; constant < 2; constant++) {
			struct pair pair = pair_new(dtypes[_i], WORDS, 0);
			fill_weights(&pair);
			change(&pair, shares[share]);
			if (constant != 0)
				memset(pair.next, 0, pair.len);
			encode(contexts[0], &pair, &block);
			ck_assert_uint_le(block.len, planes_size(&pair) + BLOCK_CODE_HEADER_MAX);
			facts_of(&pair, &block);
			pair_free(&pair);
		}
	}
	buffer_release(&block);
}
END_TEST

static const struct {
	const char *what;
	enum dtype dtype;
	unsigned share;
	enum block_mode mode;
} chosen[] = {
	{"an equal block", DTYPE_BF16, 0, BLOCK_MODE_UNCHANGED},
	{"weights", DTYPE_BF16, 884, BLOCK_MODE_ULP},
	{"half weights", DTYPE_F16, 884, BLOCK_MODE_ULP},
	{"small floats", DTYPE_F8_E4M3, 300, BLOCK_MODE_ULP},
	{"scales", DTYPE_F8_E8M0, 300, BLOCK_MODE_WORDS},
	{"packed numbers", DTYPE_I32, 30, BLOCK_MODE_WORDS},
	{"large floats", DTYPE_F32, 65536, BLOCK_MODE_XOR},
	{"doubles", DTYPE_F64, 300, BLOCK_MODE_WORDS},
};

START_TEST(the_mode_suits_the_change)
{
	struct buffer block;
	buffer_init(&block, 16 << 20);
	random_state = 15;
	struct pair pair = pair_new(chosen[_i].dtype, 70000, 0);
	fill_weights(&pair);
	change(&pair, chosen[_i].share);
	encode(contexts[0], &pair, &block);
	ck_assert_msg(facts_of(&pair, &block).mode == chosen[_i].mode, "%s", chosen[_i].what);
	for (size_t i = 0; i < pair.len; i++)
		pair.next[i] = (uint8_t)next_random();
	encode(contexts[0], &pair, &block);
	ck_assert_uint_eq(facts_of(&pair, &block).mode, BLOCK_MODE_RAW);
	memset(pair.next, 7, pair.len);
	encode(contexts[0], &pair, &block);
	ck_assert_uint_eq(facts_of(&pair, &block).mode, BLOCK_MODE_PLANES);
	pair_free(&pair);
	buffer_release(&block);
}
END_TEST

START_TEST(another_base_is_a_digest_mismatch)
{
	struct buffer block;
	struct error err;
	buffer_init(&block, 1 << 20);
	random_state = 16;
	struct pair pair = pair_new(dtypes[_i], 5000, 0);
	fill_weights(&pair);
	change(&pair, 884);
	encode(contexts[0], &pair, &block);
	uint8_t *const into = memory_new(pair.len);
	pair.base[pair.len / 2] ^= 0x40;
	ck_assert_int_ne(decode(contexts[0], &pair, buffer_span(&block), into, &err), 0);
	ck_assert_int_eq(err.kind, ERROR_DIGEST_MISMATCH);
	memset(pair.base, 0, pair.len);
	ck_assert_int_ne(decode(contexts[0], &pair, buffer_span(&block), into, &err), 0);
	ck_assert_int_eq(err.kind, ERROR_DIGEST_MISMATCH);
	free(into);
	pair_free(&pair);
	buffer_release(&block);
}
END_TEST

START_TEST(watchers_see_base_and_result)
{
	struct xxh3_stream *const base = xxh3_stream_new();
	struct xxh3_stream *const result = xxh3_stream_new();
	struct buffer block;
	struct error err;
	buffer_init(&block, 16 << 20);
	random_state = 21;
	struct pair pair = pair_new(dtypes[_i], 200001, 0);
	fill_weights(&pair);
	change(&pair, 884);
	const struct digest128 of_base = xxh3_128(span_of(pair.base, pair.len));
	const struct digest128 of_next = xxh3_128(span_of(pair.next, pair.len));
	uint8_t *const into = memory_new(pair.len);
	for (unsigned decodes = 0; decodes < 2; decodes++) {
		xxh3_stream_reset(base);
		xxh3_stream_reset(result);
		block_code_context_watch(contexts[0], base, result);
		if (decodes == 0)
			encode(contexts[0], &pair, &block);
		else
			ck_assert_int_eq(
				decode(contexts[0], &pair, buffer_span(&block), into, &err), 0);
		const struct digest128 seen_base = xxh3_stream_result(base);
		const struct digest128 seen_result = xxh3_stream_result(result);
		ck_assert(digest128_equal(&seen_base, &of_base));
		ck_assert(digest128_equal(&seen_result, &of_next));
	}
	block_code_context_watch(contexts[0], NULL, NULL);
	free(into);
	pair_free(&pair);
	buffer_release(&block);
	xxh3_stream_free(base);
	xxh3_stream_free(result);
}
END_TEST

/* A block with changed bytes gives an error or the right result. */
static void expect_refused_or_right(const struct pair *pair, struct span block)
{
	struct error err;
	for (size_t i = 0; i < PATHS; i++) {
		uint8_t *const copy = memory_copy(block.data, block.len);
		uint8_t *const into = memory_new(pair->len);
		if (contexts[i] != NULL &&
			decode(contexts[i], pair, span_of(copy, block.len), into, &err) == 0)
			ck_assert_mem_eq(into, pair->next, pair->len);
		free(copy);
		free(into);
	}
}

START_TEST(damaged_blocks_are_refused)
{
	static const unsigned shares[] = {884, 16000, 65536};
	struct buffer block;
	buffer_init(&block, 1 << 20);
	random_state = 17;
	for (size_t share = 0; share < sizeof(shares) / sizeof(*shares); share++) {
		struct pair pair = pair_new(dtypes[_i], share == 0 ? 6000 : 250, 0);
		fill_weights(&pair);
		change(&pair, shares[share]);
		encode(contexts[0], &pair, &block);
		for (size_t bit = 0; bit < 8 * block.len; bit += (size_t)unit_stride(5)) {
			block.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
			expect_refused_or_right(&pair, buffer_span(&block));
			block.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
		}
		for (size_t len = 0; len < block.len; len += (size_t)unit_stride(3)) {
			struct error err;
			uint8_t *const into = memory_new(pair.len);
			ck_assert_int_ne(
				decode(contexts[0], &pair, span_of(block.data, len), into, &err),
				0);
			ck_assert_int_eq(err.kind, ERROR_INVALID);
			free(into);
		}
		pair_free(&pair);
	}
	buffer_release(&block);
}
END_TEST

START_TEST(changes_are_counted)
{
	static const int steps[] = {1, -1, 2, 3, 4, 5, 100, -32768};
	struct block_code_stats encoded = {0};
	struct block_code_stats counted = {0};
	struct buffer block;
	buffer_init(&block, 1 << 20);
	struct pair pair = pair_new(DTYPE_BF16, 1000, 0);
	random_state = 18;
	fill_weights(&pair);
	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++)
		ulp_word_store(pair.next + 100 * i, 2,
			ulp_word_moved(
				ulp_word_load(pair.base + 100 * i, 2), (int16_t)steps[i], 2));
	const struct span base = span_of(pair.base, pair.len);
	const struct span next = span_of(pair.next, pair.len);
	block_code_encode(contexts[0], DTYPE_BF16, base, next, &block, &encoded);
	block_code_count(DTYPE_BF16, base, next, &counted);
	ck_assert_mem_eq(&encoded, &counted, sizeof(encoded));
	ck_assert_uint_eq(encoded.elements, 1000);
	ck_assert_uint_eq(encoded.changed, 8);
	static const uint64_t expected[] = {2, 1, 1, 1, 3};
	ck_assert_mem_eq(encoded.ulp_steps, expected, sizeof(expected));
	ck_assert_uint_eq(facts_of(&pair, &block).changed, 8);
	pair_free(&pair);
	buffer_release(&block);
}
END_TEST

/* The example of docs/FORMAT.md, "ulp-class blocks". */
START_TEST(the_documented_block_is_made)
{
	static const uint8_t documented[] = {0x15, 0xac, 0x2c, 0x43, 0x23, 0x3a, 0xa1, 0x96, 0x56,
		0x03, 0x00, 0x02, 0x02, 0x57, 0xa7, 0x00};
	struct buffer block;
	buffer_init(&block, 1 << 10);
	struct pair pair = pair_new(DTYPE_BF16, 32, 0);
	for (size_t i = 0; i < 32; i++) {
		ulp_word_store(pair.base + 2 * i, 2, 0x3f80);
		ulp_word_store(pair.next + 2 * i, 2, i == 3 ? 0x3f81 : i == 10 ? 0x3f7d : 0x3f80);
	}
	encode(contexts[0], &pair, &block);
	ck_assert_uint_eq(block.len, sizeof(documented));
	ck_assert_mem_eq(block.data, documented, sizeof(documented));
	pair_free(&pair);
	buffer_release(&block);
}
END_TEST

Suite *test_block_code_suite(void)
{
	Suite *const suite = suite_create("block_code");
	TCase *const tests = tcase_create("block_code");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_set_timeout(tests, 120);
	tcase_add_loop_test(tests, every_length_round_trips, 0, DTYPES);
	tcase_add_loop_test(tests, lengths_around_a_block_round_trip, 0,
		sizeof(block_dtypes) / sizeof(*block_dtypes));
	tcase_add_loop_test(tests, lengths_around_a_stretch_round_trip, 0, DTYPES);
	tcase_add_loop_test(tests, classes_full_and_empty_round_trip, 0, DTYPES);
	tcase_add_loop_test(tests, one_change_anywhere_round_trips, 0, DTYPES);
	tcase_add_loop_test(tests, every_pattern_changes_to_others, 0, 2);
	tcase_add_loop_test(tests, every_pair_of_small_words_round_trips, 2, 10);
	tcase_add_test(tests, special_numbers_keep_their_bits);
	tcase_add_test(tests, places_are_a_line_without_gaps);
	tcase_add_loop_test(tests, no_block_is_larger_than_its_planes, 0, DTYPES);
	tcase_add_loop_test(tests, the_mode_suits_the_change, 0, sizeof(chosen) / sizeof(*chosen));
	tcase_add_loop_test(tests, another_base_is_a_digest_mismatch, 0, DTYPES);
	tcase_add_loop_test(tests, watchers_see_base_and_result, 0, DTYPES);
	tcase_add_loop_test(tests, damaged_blocks_are_refused, 0, DTYPES);
	tcase_add_test(tests, changes_are_counted);
	tcase_add_test(tests, the_documented_block_is_made);
	suite_add_tcase(suite, tests);
	return suite;
}
