#include "weights/device/device_layout.h"

#include <stdlib.h>

#include "base/digest/xxh3.h"
#include "base/memory.h"
#include "weights/codec/block_header.h"
#include "weights/model/parallel.h"

struct device_layout {
	const struct schema *schema;
	uint64_t *addresses; /* of the tensors */
	size_t *firsts;      /* one more than tensors */
	size_t *tensors;     /* of each block */
};

/* Where a block lies in its tensor. */
struct place {
	size_t tensor;
	uint64_t at;
	uint64_t bytes;
};

/* One call of device_layout_hash. */
struct hashing {
	const struct device_layout *layout;
	const uint8_t *const *tensors;
	uint64_t *hashes;
};

static struct place place_of(const struct device_layout *layout, size_t block);
static parallel_fn hash_block;

struct device_layout *device_layout_new(const struct schema *schema, const uint64_t *addresses)
{
	struct device_layout *const layout = memory_new(sizeof(*layout));
	const size_t tensors = schema_count(schema);
	size_t blocks = 0;
	layout->schema = schema;
	layout->addresses = memory_new_array(tensors + 1, sizeof(*layout->addresses));
	layout->firsts = memory_new_array(tensors + 1, sizeof(*layout->firsts));
	for (size_t i = 0; i < tensors; i++) {
		const struct schema_tensor *const tensor = schema_tensor(schema, i);
		const uint64_t most = block_code_bytes(tensor->dtype);
		layout->addresses[i] = addresses[i];
		layout->firsts[i] = blocks;
		blocks += (tensor->bytes + most - 1) / most;
	}
	layout->firsts[tensors] = blocks;
	layout->tensors = memory_new_array(blocks + 1, sizeof(*layout->tensors));
	for (size_t i = 0; i < tensors; i++)
		for (size_t block = layout->firsts[i]; block < layout->firsts[i + 1]; block++)
			layout->tensors[block] = i;
	return layout;
}

void device_layout_free(struct device_layout *layout)
{
	if (layout == NULL)
		return;
	free(layout->addresses);
	free(layout->firsts);
	free(layout->tensors);
	free(layout);
}

const struct schema *device_layout_schema(const struct device_layout *layout)
{
	return layout->schema;
}

uint64_t device_layout_address(const struct device_layout *layout, size_t tensor)
{
	return layout->addresses[tensor];
}

size_t device_layout_blocks(const struct device_layout *layout)
{
	return layout->firsts[schema_count(layout->schema)];
}

size_t device_layout_first(const struct device_layout *layout, size_t tensor)
{
	return layout->firsts[tensor];
}

void device_layout_hash(const struct device_layout *layout, const uint8_t *const *tensors,
	unsigned threads, uint64_t *hashes)
{
	const size_t blocks = device_layout_blocks(layout);
	struct hashing hashing = {.layout = layout, .tensors = tensors, .hashes = hashes};
	struct error err;
	const int result =
		parallel_run(parallel_workers(threads, blocks), blocks, hash_block, &hashing, &err);
	ASSERT(result == 0);
}

size_t device_layout_keep(
	const struct device_layout *layout, const uint64_t *hashes, struct device_block *blocks)
{
	size_t count = 0;
	for (size_t i = 0; i < device_layout_blocks(layout); i++) {
		const struct place place = place_of(layout, i);
		const uint64_t address = layout->addresses[place.tensor];
		const size_t width =
			block_word_bytes(schema_tensor(layout->schema, place.tensor)->dtype);
		if (address == 0)
			continue;
		blocks[count++] = (struct device_block){.words = address + place.at,
			.result_hash = hashes[i],
			.elements = (uint32_t)(place.bytes / width),
			.number = (uint32_t)i,
			.kind = DEVICE_KEEP,
			.width = (uint8_t)width};
	}
	return count;
}

static struct place place_of(const struct device_layout *layout, size_t block)
{
	const size_t tensor = layout->tensors[block];
	const struct schema_tensor *const facts = schema_tensor(layout->schema, tensor);
	const uint64_t most = block_code_bytes(facts->dtype);
	const uint64_t at = (block - layout->firsts[tensor]) * most;
	const uint64_t left = facts->bytes - at;
	return (struct place){.tensor = tensor, .at = at, .bytes = left < most ? left : most};
}

static int hash_block(void *state, size_t item, unsigned worker, struct error *err)
{
	const struct hashing *const hashing = state;
	const struct place place = place_of(hashing->layout, item);
	(void)worker;
	(void)err;
	hashing->hashes[item] = hashing->layout->addresses[place.tensor] == 0
		? 0
		: xxh3_64(span_of(hashing->tensors[place.tensor] + place.at, place.bytes));
	return 0;
}
