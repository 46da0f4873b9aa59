/* Opening walks over the headers of all blocks, which says where each lies and what it takes; so
 * filling can do all blocks side by side. */
#include "weights/device/device_plan.h"

#include <stdlib.h>

#include "base/memory.h"
#include "weights/codec/block_header.h"
#include "weights/device/block_unpack.h"
#include "weights/model/parallel.h"

struct planned_block {
	size_t tensor;
	uint64_t at; /* of the result, in the tensor */
	uint64_t result_bytes;
	struct span block;
	uint64_t upload_at;
	uint64_t changes_at;
	uint32_t number;
};

struct device_plan {
	struct delta_reader *reader;
	const struct schema *schema;
	const struct device_layout *layout;
	const struct delta_entry **entries;
	struct planned_block *blocks;
	struct device_plan_facts facts;
};

/* One call of device_plan_fill. */
struct filling {
	const struct device_plan *plan;
	uint8_t *upload;
	struct device_block *blocks;
	struct block_code_context **contexts; /* of the workers */
};

static int plan_read(struct device_plan *plan, const char *delta, struct error *err);
static int plan_tensor(struct device_plan *plan, size_t tensor, struct error *err);
static int plan_block(
	struct device_plan *plan, size_t tensor, uint64_t at, struct span *rest, struct error *err);
static int fill_block(void *state, size_t item, unsigned worker, struct error *err);
static int blame(const struct device_plan *plan, size_t tensor, struct error *err);

struct device_plan *device_plan_open(
	const char *delta, const struct device_layout *layout, struct error *err)
{
	struct device_plan *const plan = memory_new(sizeof(*plan));
	plan->schema = device_layout_schema(layout);
	plan->layout = layout;
	if (plan_read(plan, delta, err) == 0)
		return plan;
	device_plan_free(plan);
	return NULL;
}

void device_plan_free(struct device_plan *plan)
{
	if (plan == NULL)
		return;
	free(plan->blocks);
	free(plan->entries);
	delta_reader_close(plan->reader);
	free(plan);
}

const struct delta_metadata *device_plan_metadata(const struct device_plan *plan)
{
	return delta_reader_metadata(plan->reader);
}

struct device_plan_facts device_plan_facts(const struct device_plan *plan)
{
	return plan->facts;
}

int device_plan_fill(const struct device_plan *plan, uint8_t *upload, struct device_block *blocks,
	unsigned threads, struct error *err)
{
	const unsigned workers = parallel_workers(threads, plan->facts.blocks);
	struct filling filling = {.plan = plan, .upload = upload, .blocks = blocks};
	filling.contexts = memory_new_array(workers, sizeof(*filling.contexts));
	for (unsigned i = 0; i < workers; i++)
		filling.contexts[i] = block_code_context_new();
	const int result = parallel_run(workers, plan->facts.blocks, fill_block, &filling, err);
	for (unsigned i = 0; i < workers; i++)
		block_code_context_free(filling.contexts[i]);
	free(filling.contexts);
	return result;
}

static int plan_read(struct device_plan *plan, const char *delta, struct error *err)
{
	plan->reader = delta_reader_open(delta, err);
	if (plan->reader == NULL)
		return -1;
	if (delta_reader_format(plan->reader) != DELTA_ULP_CLASS) {
		error_set(
			err, ERROR_UNSUPPORTED, "a device applies deltas of the format ulp-class");
		return delta_reader_blame(plan->reader, err);
	}
	if (delta_reader_bind(plan->reader, plan->schema, &plan->entries, err) != 0)
		return -1;
	plan->blocks =
		memory_new_array(device_layout_blocks(plan->layout) + 1, sizeof(*plan->blocks));
	for (size_t i = 0; i < schema_count(plan->schema); i++)
		if (plan->entries[i] != NULL && device_layout_address(plan->layout, i) != 0 &&
			plan_tensor(plan, i, err) != 0)
			return blame(plan, i, err);
	return 0;
}

static int plan_tensor(struct device_plan *plan, size_t tensor, struct error *err)
{
	const struct schema_tensor *const facts = schema_tensor(plan->schema, tensor);
	const uint64_t address = device_layout_address(plan->layout, tensor);
	const size_t width = block_word_bytes(facts->dtype);
	struct span rest = plan->entries[tensor]->data;
	plan->facts.tensors++;
	if (address % width != 0)
		return error_set(err, ERROR_INVALID,
			"its address %#llx must be a multiple of its words' %zu bytes",
			(unsigned long long)address, width);
	for (uint64_t at = 0; at < facts->bytes; at += block_code_bytes(facts->dtype))
		if (plan_block(plan, tensor, at, &rest, err) != 0)
			return -1;
	return rest.len == 0
		? 0
		: error_set(err, ERROR_INVALID, "%zu bytes follow its blocks", rest.len);
}

static int plan_block(
	struct device_plan *plan, size_t tensor, uint64_t at, struct span *rest, struct error *err)
{
	const struct schema_tensor *const facts = schema_tensor(plan->schema, tensor);
	const uint64_t most = block_code_bytes(facts->dtype);
	const uint64_t bytes = facts->bytes - at < most ? facts->bytes - at : most;
	struct block_unpack_size size;
	if (block_unpack_measure(*rest, facts->dtype, bytes, &size, err) != 0)
		return -1;
	plan->blocks[plan->facts.blocks++] = (struct planned_block){.tensor = tensor,
		.at = at,
		.result_bytes = bytes,
		.block = span_slice(*rest, 0, size.block_bytes),
		.upload_at = plan->facts.upload_bytes,
		.changes_at = plan->facts.changes,
		.number = (uint32_t)(device_layout_first(plan->layout, tensor) + at / most)};
	plan->facts.upload_bytes += size.upload_bytes;
	plan->facts.decoded_bytes += size.is_decoded ? size.upload_bytes : 0;
	plan->facts.changes += size.list_changes;
	plan->facts.result_bytes += bytes;
	*rest = span_slice(*rest, size.block_bytes, rest->len);
	if (plan->facts.changes > UINT32_MAX)
		return error_set(err, ERROR_UNSUPPORTED, "over 2^32 changes in one delta");
	return 0;
}

static int fill_block(void *state, size_t item, unsigned worker, struct error *err)
{
	const struct filling *const filling = state;
	const struct planned_block *const planned = &filling->plan->blocks[item];
	struct device_block *const block = &filling->blocks[item];
	const struct block_unpack_input input = {
		.dtype = schema_tensor(filling->plan->schema, planned->tensor)->dtype,
		.block = planned->block,
		.result_bytes = planned->result_bytes,
		.upload = filling->upload + planned->upload_at};
	if (block_unpack(filling->contexts[worker], &input, block, err) != 0)
		return blame(filling->plan, planned->tensor, err);
	block->words = device_layout_address(filling->plan->layout, planned->tensor) + planned->at;
	block->payload = planned->upload_at;
	block->changes_at = (uint32_t)planned->changes_at;
	block->number = planned->number;
	return 0;
}

/* Puts the delta and the tensor before the text. */
static int blame(const struct device_plan *plan, size_t tensor, struct error *err)
{
	const struct span name = schema_tensor(plan->schema, tensor)->name;
	error_wrap(err, "tensor '%.*s'", (int)name.len, (const char *)name.data);
	return delta_reader_blame(plan->reader, err);
}
