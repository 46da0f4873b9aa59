/* Any bytes as an ulp-class block over a base that is not theirs: a result with the hash they
 * promise or an error, nothing written outside, and the same on every path of the processor. Then
 * the bytes as changes of that base, and as a base and its successor: what is encoded decodes. The
 * first four bytes choose dtype, length and base. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "weights/codec/block_code.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
	RESULT_MAX =
		36000 /* of 2-byte words: four stretches as the wide paths take them, and a rest */,
	GUARD = 64
};

static const enum block_code_path PATHS[] = {
	BLOCK_CODE_PORTABLE, BLOCK_CODE_AVX2, BLOCK_CODE_AVX512};
enum { PATH_COUNT = sizeof PATHS / sizeof *PATHS };
/* NULL where the processor lacks the path */
static struct block_code_context *contexts[PATH_COUNT];

static void prepare(void)
{
	if (contexts[0] != NULL)
		return;
	for (size_t i = 0; i < PATH_COUNT; i++) {
		contexts[i] = block_code_context_new();
		if (block_code_context_use(contexts[i], PATHS[i]))
			continue;
		block_code_context_free(contexts[i]);
		contexts[i] = NULL;
	}
}

/* Words of a few exponents, as weights are, so that classes have members. */
static void fill_base(uint8_t *base, size_t len, uint8_t seed)
{
	uint32_t state = seed * 2654435761U + 1;
	for (size_t i = 0; i < len; i++) {
		state = state * 1664525U + 1013904223U;
		base[i] = (uint8_t)(i % 2 == 0 ? state >> 24 : 0x3c | (state >> 30));
	}
}

static void decode(enum dtype dtype, struct span block, struct span base)
{
	struct block_code_facts facts;
	struct error err;
	if (block_code_parse(block, dtype, base.len, &facts, &err) != 0)
		return;
	ASSERT(facts.result_bytes == base.len && facts.payload_bytes <= block_code_payload_max());
	if (facts.header_bytes + facts.payload_bytes > block.len)
		return;
	static uint8_t into[PATH_COUNT][RESULT_MAX + GUARD];
	int first = 1;
	for (size_t i = 0; i < PATH_COUNT; i++) {
		if (contexts[i] == NULL)
			continue;
		memset(into[i], 0x5a, sizeof into[i]);
		const struct span whole =
			span_of(block.data, facts.header_bytes + facts.payload_bytes);
		const int got = block_code_decode(contexts[i], dtype, whole, base, into[i], &err);
		for (size_t at = base.len; at < sizeof into[i]; at++)
			ASSERT(into[i][at] == 0x5a);
		if (first == 1)
			first = got;
		ASSERT(got == first);
		ASSERT(got != 0 || memcmp(into[i], into[0], base.len) == 0);
	}
}

static void round_trip(enum dtype dtype, struct span base, struct span next)
{
	struct buffer out[PATH_COUNT];
	struct block_code_facts facts;
	struct error err;
	static uint8_t into[RESULT_MAX];
	for (size_t i = 0; i < PATH_COUNT; i++) {
		buffer_init(&out[i], 1 << 20);
		if (contexts[i] == NULL)
			continue;
		block_code_encode(contexts[i], dtype, base, next, &out[i], NULL);
		const struct span block = buffer_span(&out[i]);
		ASSERT(span_equal(block, buffer_span(&out[0])));
		ASSERT(block_code_parse(block, dtype, next.len, &facts, &err) == 0);
		ASSERT(facts.header_bytes + facts.payload_bytes == block.len);
		ASSERT(block_code_decode(contexts[i], dtype, block, base, into, &err) == 0);
		ASSERT(memcmp(into, next.data, next.len) == 0);
	}
	for (size_t i = 0; i < PATH_COUNT; i++)
		buffer_release(&out[i]);
}

/* Each four bytes change one: a place and a value. */
static void change(uint8_t *next, size_t len, struct span changes)
{
	for (size_t i = 0; i + 4 <= changes.len; i += 4) {
		const size_t place = (size_t)(changes.data[i] | changes.data[i + 1] << 8 |
					     changes.data[i + 2] << 16) %
			len;
		next[place] = (uint8_t)(next[place] + changes.data[i + 3]);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 5)
		return 0;
	prepare();
	const enum dtype dtype = (enum dtype)(data[0] % DTYPE_COUNT);
	const size_t width = dtype_bits(dtype) < 8 ? 1 : dtype_bits(dtype) / 8;
	const struct span rest = span_of(data + 4, size - 4);
	const size_t words = 1 + (size_t)(data[1] | data[2] << 8) % (RESULT_MAX / width);
	static uint8_t base[RESULT_MAX];
	static uint8_t next[RESULT_MAX];
	fill_base(base, words * width, data[3]);
	decode(dtype, rest, span_of(base, words * width));
	memcpy(next, base, words * width);
	change(next, words * width, rest);
	round_trip(dtype, span_of(base, words * width), span_of(next, words * width));
	const size_t half = (rest.len / 2 < RESULT_MAX ? rest.len / 2 : RESULT_MAX) / width * width;
	if (half > 0)
		round_trip(dtype, span_of(rest.data, half), span_of(rest.data + half, half));
	return 0;
}
