/* ulp-class: each block is encoded for itself. The payload of a changed tensor is all of its
 * blocks. */
#include "weights/delta/payload.h"

static int payload_blocks_take(struct payload *payload, unsigned number,
	const struct tensor_block *block, struct error *err)
{
	struct payload_worker *const worker = &payload->workers[number];
	struct payload_piece *const piece = payload_piece(payload, block);
	const uint64_t before = worker->stats.changed;
	if (worker->code == NULL)
		worker->code = block_code_context_new();
	buffer_reset(&worker->made);
	block_code_encode(worker->code, schema_tensor(payload->schema, block->tensor)->dtype,
		block->base, block->next, &worker->made, &worker->stats);
	piece->changed = worker->stats.changed - before;
	if (buffer_check(&worker->made, "a block of the delta", err) != 0)
		return -1;
	return payload_spool(payload, number, piece, buffer_span(&worker->made), err);
}

static unsigned payload_blocks_layout(struct payload *payload, struct payload_tensor *tensor,
	struct payload_part parts[PAYLOAD_PARTS])
{
	(void)payload;
	parts[0] = (struct payload_part){.suffix = "", .dtype = DTYPE_U8};
	for (uint64_t i = 0; i < tensor->piece_count; i++)
		parts[0].count += tensor->pieces[i].bytes;
	return 1;
}

static int payload_blocks_write(
	struct payload *payload, unsigned worker, struct payload_tensor *tensor, struct error *err)
{
	uint64_t at = tensor->at[0];
	for (uint64_t i = 0; i < tensor->piece_count; i++) {
		if (payload_copy(payload, worker, &tensor->pieces[i], tensor->file, at, err) != 0)
			return -1;
		at += tensor->pieces[i].bytes;
	}
	return 0;
}

const struct payload_ops payload_blocks = {
	.block = payload_blocks_take,
	.layout = payload_blocks_layout,
	.write = payload_blocks_write,
};
