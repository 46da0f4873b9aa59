/* The kernels for devices give what the decoder of the processor gives, and nothing that a block
 * says leads outside of its memory. */
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "tests/unit/weights/device/device_machine.h"
#include "tests/unit/weights/weights_fixture.h"
#include "weights/codec/block_header.h"
#include "weights/device/block_unpack.h"

unit_suite_fn test_block_kernels_suite;

/* Those that have classes first. */
static const enum dtype dtypes[] = {DTYPE_BF16, DTYPE_F16, DTYPE_F8_E4M3, DTYPE_F8_E5M2,
	DTYPE_F8_E4M3FNUZ, DTYPE_F8_E5M2FNUZ, DTYPE_F8_E8M0, DTYPE_U8, DTYPE_I8, DTYPE_BOOL,
	DTYPE_F4, DTYPE_F6_E2M3, DTYPE_F6_E3M2, DTYPE_U16, DTYPE_I16, DTYPE_U32, DTYPE_I32,
	DTYPE_F32, DTYPE_U64, DTYPE_I64, DTYPE_F64, DTYPE_C64};
enum { DTYPES = sizeof(dtypes) / sizeof(*dtypes), ULP_DTYPES = 6 };
_Static_assert((int)DTYPES == (int)DTYPE_COUNT, "every dtype is tested");

static struct block_code_context *context;
static uint64_t random_state;

static void set_up(void)
{
	context = block_code_context_new();
	random_state = 1;
}

static void tear_down(void)
{
	block_code_context_free(context);
}

static uint64_t next_random(void)
{
	return fixture_random64(&random_state);
}

/* Base and result of one block, each in memory of exactly its size. */
struct sample {
	enum dtype dtype;
	size_t len;
	uint8_t *base;
	uint8_t *next;
};

/* A word of a float: one in two has the largest exponent, one in four the next one, and so on. */
static uint64_t weight_of(const struct ulp_format format, unsigned below, uint64_t bits)
{
	const unsigned exponent = format.mask / 2u - below % (format.mask / 2u);
	return (bits >> 40 & 1) << (format.width * 8 - 1) | (uint64_t)exponent << format.shift |
		(bits & ((1u << format.shift) - 1));
}

/* Words with exponents like those of weights. About `share` of 65536 differ, most by one; of floats
 * the more, the smaller they are, which makes classes. */
static struct sample sample_new(enum dtype dtype, size_t words, unsigned share)
{
	const size_t width = block_word_bytes(dtype);
	const struct ulp_format format = ulp_format_of(dtype);
	struct sample sample = {.dtype = dtype, .len = words * width};
	sample.base = memory_new(sample.len);
	sample.next = memory_new(sample.len);
	for (size_t i = 0; i < sample.len; i += width) {
		const uint64_t dice = next_random();
		const unsigned below = (unsigned)__builtin_ctzll(dice | 1 << 14);
		const bool is_float = format.width != 0;
		uint64_t word = next_random();
		if (is_float)
			word = weight_of(format, below, word);
		memcpy(sample.base + i, &word, width);
		if ((dice >> 16 & 65535) < (is_float ? share * (1 + below * below) / 2 : share))
			word += (dice >> 32 & 7) != 0 ? 1 : dice >> 36;
		memcpy(sample.next + i, &word, width);
	}
	return sample;
}

/* Takes back the changes of floats with every other exponent, so that classes have none. */
static void sample_calm(struct sample *sample)
{
	const size_t width = block_word_bytes(sample->dtype);
	const struct ulp_format format = ulp_format_of(sample->dtype);
	for (size_t i = 0; i < sample->len; i += width) {
		uint64_t word = 0;
		memcpy(&word, sample->base + i, width);
		if (format.width != 0 && (word >> format.shift & 1) != 0)
			memcpy(sample->next + i, sample->base + i, width);
	}
}

static void sample_free(struct sample *sample)
{
	free(sample->base);
	free(sample->next);
}

/* One block on the device: all in memory of exactly its size. Half of them lie at a multiple of 8,
 * the others one word behind it. */
struct device {
	struct device_block block;
	struct device_work work;
	uint8_t *memory;
	uint8_t *words;
	uint32_t failure;
	uint64_t hash;
};

/* -1 when the host refuses the block. */
static int device_load(struct device *device, const struct sample *sample, struct span block)
{
	struct block_unpack_size size;
	struct error err;
	if (block_unpack_measure(block, sample->dtype, sample->len, &size, &err) != 0)
		return -1;
	uint8_t *const upload = memory_new(size.upload_bytes);
	const struct block_unpack_input input = {.dtype = sample->dtype,
		.block = span_of(block.data, size.block_bytes),
		.result_bytes = sample->len,
		.upload = upload};
	if (block_unpack(context, &input, &device->block, &err) != 0) {
		free(upload);
		return -1;
	}
	const size_t before = next_random() % 2 * block_word_bytes(sample->dtype);
	device->memory = memory_new(before + sample->len);
	device->words = device->memory + before;
	memcpy(device->words, sample->base, sample->len);
	device->block.words = (uint64_t)(uintptr_t)device->words;
	device->work = (struct device_work){.blocks = &device->block,
		.count = 1,
		.upload = upload,
		.places = memory_new_array(size.list_changes + 1u, sizeof(uint32_t)),
		.steps = memory_new_array(size.list_changes + 1u, sizeof(uint16_t)),
		.failures = &device->failure,
		.hashes = &device->hash};
	return 0;
}

static void device_free(struct device *device)
{
	free(device->memory);
	free(device->work.upload);
	free(device->work.places);
	free(device->work.steps);
}

static void expect_base(const struct device *device, const struct sample *sample)
{
	ck_assert_mem_eq(device->words, sample->base, sample->len);
}

/* What else is noted of a block beside its mode. */
enum { MANY_CLASSES = 1 << BLOCK_MODE_COUNT, CALM_CLASSES = MANY_CLASSES << 1 };

static unsigned notes_of(const struct device_block *block)
{
	unsigned notes = block->classes > 5 ? MANY_CLASSES : 0;
	for (unsigned i = 0; i < block->classes; i++)
		notes |= block->counts[i] == 0 ? CALM_CLASSES : 0;
	return notes;
}

static void expect_equal(const struct sample *sample, unsigned threads, unsigned *notes)
{
	struct buffer block;
	struct device device = {.failure = 0};
	buffer_init(&block, SIZE_MAX);
	block_code_encode(context, sample->dtype, span_of(sample->base, sample->len),
		span_of(sample->next, sample->len), &block, NULL);
	ck_assert_int_eq(device_load(&device, sample, buffer_span(&block)), 0);
	*notes |= 1u << (block.data[0] & 15) | notes_of(&device.block);
	device_machine_change(&device.work, threads);
	ck_assert_uint_eq(device.failure, DEVICE_FINE);
	ck_assert_mem_eq(device.words, sample->next, sample->len);
	device_machine_undo(&device.work, threads);
	expect_base(&device, sample);
	device_free(&device);
	buffer_release(&block);
}

/* Around the sizes at which a hash, a stripe, a tile or a block ends. */
static const size_t sizes[] = {1, 2, 3, 4, 5, 8, 9, 16, 17, 33, 64, 65, 97, 128, 129, 161, 240, 241,
	256, 257, 511, 512, 513, 1024, 1025, 4095, 4096, 4097, 8192, 8193, 20000, 100000};
static const unsigned shares[] = {0, 1, 200, 786, 6000, 20000, 65536};

START_TEST(test_every_dtype)
{
	const enum dtype dtype = dtypes[_i];
	unsigned notes = 0;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		for (size_t k = 0; k < sizeof(shares) / sizeof(*shares); k++) {
			struct sample sample = sample_new(dtype, sizes[i], shares[k]);
			expect_equal(&sample, 1, &notes);
			sample_free(&sample);
		}
	ck_assert_uint_ne(notes & 1u << BLOCK_MODE_UNCHANGED, 0);
	if (_i < ULP_DTYPES) {
		ck_assert_uint_ne(notes & 1u << BLOCK_MODE_ULP, 0);
		ck_assert_uint_ne(notes & MANY_CLASSES, 0);
	} else
		ck_assert_uint_ne(notes & 1u << BLOCK_MODE_WORDS, 0);
}
END_TEST

/* With many threads side by side, which the thread sanitizer watches; and where every other class
 * has no change. */
START_TEST(test_many_threads)
{
	static const unsigned threads[] = {3, 16, DEVICE_THREADS};
	unsigned notes = 0;
	for (size_t i = 0; i < sizeof(threads) / sizeof(*threads); i++)
		for (int dtype = 0; dtype < DTYPES; dtype += dtype < ULP_DTYPES ? 1 : 4) {
			struct sample sample = sample_new(dtypes[dtype], 10000, 900);
			expect_equal(&sample, threads[i], &notes);
			sample_calm(&sample);
			expect_equal(&sample, threads[i], &notes);
			sample_free(&sample);
		}
	ck_assert_uint_ne(notes & MANY_CLASSES, 0);
	ck_assert_uint_ne(notes & CALM_CLASSES, 0);
}
END_TEST

START_TEST(test_whole_blocks)
{
	unsigned notes = 0;
	for (int dtype = 0; dtype < DTYPES; dtype += 2) {
		struct sample sample = sample_new(
			dtypes[dtype], BLOCK_CODE_ELEMENTS, dtype % 4 == 0 ? 786 : 30000);
		expect_equal(&sample, 1, &notes);
		sample_free(&sample);
	}
}
END_TEST

/* What compresses as a whole, as it is or as a difference, and what does not compress at all. */
START_TEST(test_whole_modes)
{
	unsigned notes = 0;
	struct sample sample = sample_new(DTYPE_F32, 5000, 65536);
	expect_equal(&sample, 1, &notes);
	for (size_t i = 0; i < sample.len; i++)
		sample.next[i] = (uint8_t)next_random();
	expect_equal(&sample, 1, &notes);
	memset(sample.next, 7, sample.len);
	expect_equal(&sample, 1, &notes);
	ck_assert_uint_eq(
		notes, 1u << BLOCK_MODE_RAW | 1u << BLOCK_MODE_PLANES | 1u << BLOCK_MODE_XOR);
	sample_free(&sample);
}
END_TEST

/* What the host refuses, and then what `enum device_failure` has. */
enum { VERDICT_REFUSED, VERDICT_OF_DEVICE, VERDICTS = VERDICT_OF_DEVICE + DEVICE_MISMATCH + 1 };

/* The same verdict as the decoder's, and the same bytes; after a failure the base can be had. */
static void expect_same_verdict(
	const struct sample *sample, struct span block, unsigned threads, unsigned seen[VERDICTS])
{
	struct block_unpack_size size;
	struct device device = {.failure = 0};
	struct error err;
	struct error wanted = {.kind = ERROR_NONE};
	uint8_t *const into = memory_new(sample->len);
	const bool has_header =
		block_unpack_measure(block, sample->dtype, sample->len, &size, &err) == 0;
	const int decoded = has_header
		? block_code_decode(context, sample->dtype, span_of(block.data, size.block_bytes),
			  span_of(sample->base, sample->len), into, &wanted)
		: -1;
	if (device_load(&device, sample, block) != 0) {
		ck_assert_int_eq(decoded, -1);
		ck_assert(!has_header || wanted.kind == ERROR_INVALID);
		seen[VERDICT_REFUSED]++;
		free(into);
		return;
	}
	device_machine_change(&device.work, threads);
	seen[VERDICT_OF_DEVICE + device.failure]++;
	if (decoded == 0) {
		ck_assert_uint_eq(device.failure, DEVICE_FINE);
		ck_assert_mem_eq(device.words, into, sample->len);
	} else {
		ck_assert_uint_eq(device.failure,
			wanted.kind == ERROR_INVALID ? DEVICE_MALFORMED : DEVICE_MISMATCH);
	}
	if (device.failure == DEVICE_MALFORMED)
		expect_base(&device, sample);
	device_machine_undo(&device.work, threads);
	expect_base(&device, sample);
	device_free(&device);
	free(into);
}

static void damage(struct buffer *block)
{
	const uint64_t times = 1 + next_random() % 3;
	for (uint64_t i = 0; i < times; i++) {
		/* most of it in the header, where counts and sizes are */
		const size_t most = next_random() % 2 == 0 && block->len > 40 ? 40 : block->len;
		block->data[next_random() % most] ^= (uint8_t)(1u << next_random() % 8);
	}
}

/* A base and a result of any kind, so that the encoder takes every mode; one in twenty has several
 * tiles. */
static struct sample any_sample(enum dtype dtype)
{
	const uint64_t kind = next_random() % 8;
	const size_t words = 1 + next_random() % (next_random() % 20 == 0 ? 9000 : 700);
	unsigned share = words > 700 ? 700 : (unsigned)(next_random() % 9000);
	if (kind < 2)
		share = kind == 0 ? 0 : 65536;
	struct sample sample = sample_new(dtype, words, share);
	if (kind == 2)
		memset(sample.next, 7, sample.len);
	for (size_t i = 0; kind == 3 && i < sample.len; i++)
		sample.next[i] = (uint8_t)next_random();
	return sample;
}

/* Mostly one, which is quick. Primes, so that a build that leaps does not have more of them. */
static unsigned any_threads(int round)
{
	if (round % 997 == 0)
		return DEVICE_THREADS;
	return round % 211 == 0 ? 16 : round % 53 == 0 ? 3 : 1;
}

/* Of blocks whose first byte was as it is in no mode. */
enum { MODE_UNKNOWN = BLOCK_MODE_COUNT, MODES };

static void judge_damaged(
	enum dtype dtype, int round, struct buffer *whole, unsigned seen[MODES][VERDICTS])
{
	struct sample sample = any_sample(dtype);
	buffer_reset(whole);
	block_code_encode(context, dtype, span_of(sample.base, sample.len),
		span_of(sample.next, sample.len), whole, NULL);
	damage(whole);
	uint8_t *const exact = memory_new(whole->len);
	memcpy(exact, whole->data, whole->len);
	const unsigned mode = exact[0] & 15;
	expect_same_verdict(&sample, span_of(exact, whole->len), any_threads(round),
		seen[mode < BLOCK_MODE_COUNT ? mode : MODE_UNKNOWN]);
	free(exact);
	sample_free(&sample);
}

START_TEST(test_damaged_blocks)
{
	enum { ROUNDS = 100000, MANY = 100 };
	unsigned seen[MODES][VERDICTS] = {{0}};
	struct buffer whole;
	buffer_init(&whole, SIZE_MAX);
	for (int round = 0; round < ROUNDS; round += unit_stride(5))
		judge_damaged(dtypes[next_random() % DTYPES], round, &whole, seen);
	buffer_release(&whole);
	for (unsigned mode = 0; mode < BLOCK_MODE_COUNT; mode++) {
		ck_assert_uint_gt(seen[mode][VERDICT_REFUSED], MANY);
		ck_assert_uint_gt(seen[mode][VERDICT_OF_DEVICE + DEVICE_MISMATCH], MANY);
	}
	ck_assert_uint_gt(seen[BLOCK_MODE_ULP][VERDICT_OF_DEVICE + DEVICE_FINE], 0);
	ck_assert_uint_gt(seen[BLOCK_MODE_ULP][VERDICT_OF_DEVICE + DEVICE_MALFORMED], MANY);
	ck_assert_uint_gt(seen[MODE_UNKNOWN][VERDICT_REFUSED], MANY);
}
END_TEST

/* A wrong base: the classes are others, ranks may lead nowhere, and the hash does not match. */
START_TEST(test_wrong_base)
{
	struct buffer block;
	unsigned seen[VERDICTS] = {0};
	buffer_init(&block, SIZE_MAX);
	for (int round = 0; round < 200; round++) {
		struct sample sample = sample_new(DTYPE_BF16, 9000, 700);
		struct sample other = sample_new(DTYPE_BF16, 9000, 700);
		buffer_reset(&block);
		block_code_encode(context, DTYPE_BF16, span_of(sample.base, sample.len),
			span_of(sample.next, sample.len), &block, NULL);
		if (round % 2 == 0)
			memset(other.base, 0, other.len);
		expect_same_verdict(&other, buffer_span(&block), round % 20 < 2 ? 16 : 1, seen);
		sample_free(&sample);
		sample_free(&other);
	}
	buffer_release(&block);
	ck_assert_uint_eq(seen[VERDICT_OF_DEVICE + DEVICE_MISMATCH], 200);
}
END_TEST

Suite *test_block_kernels_suite(void)
{
	Suite *suite = suite_create("block_kernels");
	TCase *tests = tcase_create("block_kernels");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_set_timeout(tests, 120);
	tcase_add_loop_test(tests, test_every_dtype, 0, DTYPES);
	tcase_add_test(tests, test_many_threads);
	tcase_add_test(tests, test_whole_blocks);
	tcase_add_test(tests, test_whole_modes);
	tcase_add_test(tests, test_damaged_blocks);
	tcase_add_test(tests, test_wrong_base);
	suite_add_tcase(suite, tests);
	return suite;
}
