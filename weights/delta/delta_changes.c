/* A tensor is cut into runs of 65536 elements. A run with few changes has a list of 16-bit
 * positions, one with many has a bit for each element; the threshold is where both take the same
 * memory. A block is a whole number of runs, so blocks can be added on many threads. */
#include "weights/delta/delta_changes.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "weights/codec/block_code.h"
#include "weights/codec/element_scan.h"

enum { LIST_MOST = DELTA_CHANGES_RUN / 16, WORD_BITS = 64, STRIDE_BYTES = 64 };

_Static_assert(BLOCK_CODE_ELEMENTS % DELTA_CHANGES_RUN == 0, "a block is a whole number of runs");
_Static_assert((int)DELTA_CHANGES_RUN == (int)ELEMENT_SCAN_BLOCK, "a run is scanned in one call");

struct run {
	uint32_t count;
	uint16_t *list; /* with up to LIST_MOST changes */
	uint64_t *bits; /* with more */
};
struct delta_changes {
	const struct schema *schema;
	struct run **tensors;
};

static uint64_t run_count(const struct schema_tensor *tensor);
static size_t element_bytes(const struct schema_tensor *tensor);
static size_t scan(
	const uint8_t *base, const uint8_t *next, size_t bytes, size_t width, uint16_t *positions);
static uint64_t *make_bits(const uint16_t *positions, size_t count);
static uint64_t *print_run(const struct run *run, uint64_t start, uint64_t *out);

struct delta_changes *delta_changes_new(const struct schema *schema)
{
	struct delta_changes *const changes = memory_new(sizeof(*changes));
	const size_t count = schema_count(schema);
	changes->schema = schema;
	changes->tensors = memory_new_array(count, sizeof(changes->tensors[0]));
	for (size_t i = 0; i < count; i++)
		changes->tensors[i] = memory_new_array((size_t)run_count(schema_tensor(schema, i)),
			sizeof(changes->tensors[i][0]));
	return changes;
}

void delta_changes_free(struct delta_changes *changes)
{
	if (changes == NULL)
		return;
	delta_changes_reset(changes);
	for (size_t i = 0; i < schema_count(changes->schema); i++)
		free(changes->tensors[i]);
	free(changes->tensors);
	free(changes);
}

const struct schema *delta_changes_schema(const struct delta_changes *changes)
{
	return changes->schema;
}

void delta_changes_reset(struct delta_changes *changes)
{
	for (size_t i = 0; i < schema_count(changes->schema); i++)
		delta_changes_reset_tensor(changes, i);
}

void delta_changes_reset_tensor(struct delta_changes *changes, size_t tensor)
{
	const uint64_t runs = run_count(schema_tensor(changes->schema, tensor));
	for (uint64_t run = 0; run < runs; run++) {
		free(changes->tensors[tensor][run].list);
		free(changes->tensors[tensor][run].bits);
		changes->tensors[tensor][run] = (struct run){0};
	}
}

void delta_changes_add(struct delta_changes *changes, const struct tensor_block *block)
{
	const struct schema_tensor *const tensor = schema_tensor(changes->schema, block->tensor);
	const size_t width = element_bytes(tensor);
	const size_t run_bytes = width * DELTA_CHANGES_RUN;
	const uint64_t first = block->at / run_bytes;
	ASSERT(block->base.len == block->next.len && block->at % run_bytes == 0);
	if (block->base.data == block->next.data || block->base.len == 0)
		return;
	uint16_t *const positions = memory_new_array(DELTA_CHANGES_RUN, sizeof(positions[0]));
	for (size_t at = 0; at < block->base.len; at += run_bytes) {
		const size_t left = block->base.len - at;
		const size_t count = scan(block->base.data + at, block->next.data + at,
			left < run_bytes ? left : run_bytes, width, positions);
		delta_changes_put(changes, block->tensor, first + at / run_bytes, positions, count);
	}
	free(positions);
}

int delta_changes_compare(struct delta_changes *changes, struct tensor_source *base,
	struct tensor_source *next, size_t tensor, struct error *err)
{
	struct tensor_cursor *const old = tensor_source_open(base, tensor, err);
	struct tensor_cursor *const new =
		old != NULL ? tensor_source_open(next, tensor, err) : NULL;
	struct tensor_block block = {.tensor = tensor};
	int taken = new != NULL ? 1 : -1;
	while (taken > 0) {
		taken = tensor_cursor_next(old, &block.base, err);
		if (taken > 0)
			taken = tensor_cursor_next(new, &block.next, err);
		if (taken > 0)
			delta_changes_add(changes, &block);
		block.at += block.next.len;
	}
	tensor_cursor_close(old);
	tensor_cursor_close(new);
	return taken;
}

void delta_changes_put(struct delta_changes *changes, size_t tensor, uint64_t run,
	const uint16_t *positions, size_t count)
{
	ASSERT(run < run_count(schema_tensor(changes->schema, tensor)));
	struct run *const into = &changes->tensors[tensor][run];
	ASSERT(into->count == 0);
	into->count = (uint32_t)count;
	if (count > LIST_MOST)
		into->bits = make_bits(positions, count);
	else if (count > 0)
		into->list = memory_copy(positions, count * sizeof(positions[0]));
}

uint64_t delta_changes_count(const struct delta_changes *changes, size_t tensor)
{
	const uint64_t runs = run_count(schema_tensor(changes->schema, tensor));
	uint64_t count = 0;
	for (uint64_t run = 0; run < runs; run++)
		count += changes->tensors[tensor][run].count;
	return count;
}

void delta_changes_positions(
	const struct delta_changes *changes, size_t tensor, uint64_t *out_positions)
{
	const uint64_t runs = run_count(schema_tensor(changes->schema, tensor));
	for (uint64_t run = 0; run < runs; run++)
		out_positions = print_run(
			&changes->tensors[tensor][run], run * DELTA_CHANGES_RUN, out_positions);
}

static uint64_t run_count(const struct schema_tensor *tensor)
{
	const uint64_t run_bytes = element_bytes(tensor) * DELTA_CHANGES_RUN;
	return tensor->bytes / run_bytes + (tensor->bytes % run_bytes != 0);
}

static size_t element_bytes(const struct schema_tensor *tensor)
{
	return dtype_bits(tensor->dtype) < 8 ? 1 : dtype_bits(tensor->dtype) / 8;
}

/* Returns the count of elements that differ. */
static size_t scan(
	const uint8_t *base, const uint8_t *next, size_t bytes, size_t width, uint16_t *positions)
{
	size_t found = 0;
	if (width == sizeof(uint16_t))
		return element_scan(base, next, bytes / width, positions);
	for (size_t from = 0; from < bytes; from += STRIDE_BYTES) {
		const size_t to = bytes - from < STRIDE_BYTES ? bytes : from + STRIDE_BYTES;
		if (memcmp(base + from, next + from, to - from) == 0)
			continue;
		for (size_t i = from; i < to; i += width)
			if (memcmp(base + i, next + i, width) != 0)
				positions[found++] = (uint16_t)(i / width);
	}
	return found;
}

static uint64_t *make_bits(const uint16_t *positions, size_t count)
{
	uint64_t *const bits = memory_new_array(DELTA_CHANGES_RUN / WORD_BITS, sizeof(bits[0]));
	for (size_t i = 0; i < count; i++)
		bits[positions[i] / WORD_BITS] |= UINT64_C(1) << positions[i] % WORD_BITS;
	return bits;
}

/* Returns the place behind the last position. */
static uint64_t *print_run(const struct run *run, uint64_t start, uint64_t *out)
{
	for (uint32_t i = 0; run->list != NULL && i < run->count; i++)
		*out++ = start + run->list[i];
	for (unsigned i = 0; run->bits != NULL && i < DELTA_CHANGES_RUN / WORD_BITS; i++)
		for (uint64_t left = run->bits[i]; left != 0; left &= left - 1)
			*out++ = start + i * WORD_BITS + (unsigned)__builtin_ctzll(left);
	return out;
}
