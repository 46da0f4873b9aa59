/* Any bytes as an ulp-class block for a device, over a base that is not theirs: the kernels, run on
 * this machine, give the verdict and the bytes of the decoder, nothing is written outside, and the
 * base comes back. The first four bytes choose dtype, length and base, as in fuzz_block_code.c. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "tests/unit/weights/device/device_machine.c"
#include "weights/codec/block_header.h"
#include "weights/device/block_unpack.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { RESULT_MAX = 36000 };

/* One block, with all memory of exactly its size. */
struct fuzzed {
	enum dtype dtype;
	struct span base;
	struct span block;
	struct block_unpack_size size;
	struct device_block header;
	struct device_work work;
	uint32_t failure;
	uint64_t hash;
};

static struct block_code_context *context;

/* Words of a few exponents, as weights are, so that classes have members. */
static void fill_base(uint8_t *base, size_t len, uint8_t seed)
{
	uint32_t state = seed * 2654435761U + 1;
	for (size_t i = 0; i < len; i++) {
		state = state * 1664525U + 1013904223U;
		base[i] = (uint8_t)(i % 2 == 0 ? state >> 24 : 0x3c | (state >> 30));
	}
}

/* The kind of error of the decoder of the processor. */
static enum error_kind decode(const struct fuzzed *fuzzed, uint8_t *into)
{
	struct error err = {.kind = ERROR_NONE};
	block_code_decode(context, fuzzed->dtype, fuzzed->block, fuzzed->base, into, &err);
	return err.kind;
}

static void run_kernels(
	struct fuzzed *fuzzed, uint8_t *words, enum error_kind kind, const uint8_t *wanted)
{
	const struct span base = fuzzed->base;
	memcpy(words, base.data, base.len);
	fuzzed->header.words = (uint64_t)(uintptr_t)words;
	device_machine_change(&fuzzed->work, 1);
	ASSERT((fuzzed->failure == DEVICE_FINE) == (kind == ERROR_NONE));
	ASSERT((fuzzed->failure == DEVICE_MALFORMED) == (kind == ERROR_INVALID));
	if (fuzzed->failure == DEVICE_FINE)
		ASSERT(memcmp(words, wanted, base.len) == 0);
	device_machine_undo(&fuzzed->work, 1);
	ASSERT(memcmp(words, base.data, base.len) == 0);
}

static void judge(struct fuzzed *fuzzed)
{
	struct error err;
	uint8_t *const upload = memory_new(fuzzed->size.upload_bytes + 1);
	uint8_t *const into = memory_new(fuzzed->base.len);
	uint8_t *const words = memory_new(fuzzed->base.len);
	const struct block_unpack_input input = {.dtype = fuzzed->dtype,
		.block = fuzzed->block,
		.result_bytes = fuzzed->base.len,
		.upload = upload};
	const enum error_kind kind = decode(fuzzed, into);
	fuzzed->work = (struct device_work){.blocks = &fuzzed->header,
		.count = 1,
		.upload = upload,
		.places = memory_new_array(fuzzed->size.list_changes + 1u, sizeof(uint32_t)),
		.steps = memory_new_array(fuzzed->size.list_changes + 1u, sizeof(uint16_t)),
		.failures = &fuzzed->failure,
		.hashes = &fuzzed->hash};
	if (block_unpack(context, &input, &fuzzed->header, &err) == 0)
		run_kernels(fuzzed, words, kind, into);
	else
		ASSERT(kind == ERROR_INVALID);
	free(fuzzed->work.places);
	free(fuzzed->work.steps);
	free(words);
	free(into);
	free(upload);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t base[RESULT_MAX];
	struct error err;
	if (size < 5)
		return 0;
	if (context == NULL)
		context = block_code_context_new();
	struct fuzzed fuzzed = {.dtype = (enum dtype)(data[0] % DTYPE_COUNT)};
	const size_t width = block_word_bytes(fuzzed.dtype);
	const struct span rest = span_of(data + 4, size - 4);
	const size_t words = 1 + (size_t)(data[1] | data[2] << 8) % (RESULT_MAX / width);
	fill_base(base, words * width, data[3]);
	fuzzed.base = span_of(base, words * width);
	if (block_unpack_measure(rest, fuzzed.dtype, fuzzed.base.len, &fuzzed.size, &err) != 0)
		return 0;
	fuzzed.block = span_slice(rest, 0, fuzzed.size.block_bytes);
	judge(&fuzzed);
	return 0;
}
