/* Slime's directories: one zstd frame for each changed tensor. One thread walks a tensor from front
 * to back and makes its frame. Nothing is compressed before the first change, because most tensors
 * of some models do not change; an XOR frame then begins with the zeros up to it. An OVERWRITE
 * frame has all positions before all values, so both wait in streams of their own until the end of
 * the tensor. The checksum is of the whole new tensor. */
#include <stdlib.h>
#include <string.h>

#include "base/encode.h"
#include "base/memory.h"
#include "weights/codec/element_scan.h"
#include "weights/delta/payload.h"

enum {
	LEVEL = 1,
	POSITION_BYTES = 4,
	GATHERED_BYTES = 1 << 16,
	BLOCK_BYTES_MAX = BLOCK_CODE_ELEMENTS * 8
};
/* Streams of a worker; 0 has its frames. */
enum { STREAM_POSITIONS = 1, STREAM_VALUES = 2 };

static void begin_tensor(struct payload *payload, struct payload_worker *worker)
{
	const enum delta_checksum kind = payload->params->checksum;
	worker->begun = false;
	worker->changed = 0;
	if (worker->zstd == NULL)
		worker->zstd = zstd_writer_new(LEVEL);
	if (worker->block == NULL)
		worker->block = memory_new(BLOCK_BYTES_MAX);
	/* The pass makes XXH3-128 in any case. */
	if (worker->checksum == NULL && kind != DELTA_XXH3_128)
		worker->checksum = tensor_checksum_new(kind);
	if (worker->checksum != NULL)
		tensor_checksum_reset(worker->checksum);
}

static uint64_t count_changed(const struct payload *payload, const struct tensor_block *block)
{
	const unsigned bits = dtype_bits(schema_tensor(payload->schema, block->tensor)->dtype);
	return element_scan_count(
		block->base.data, block->next.data, block->next.len, bits < 8 ? 1 : bits / 8);
}

static bool is_last(const struct payload *payload, const struct tensor_block *block)
{
	return block->at + block->next.len == schema_tensor(payload->schema, block->tensor)->bytes;
}

/* Adds a block to statistics and checksum. Returns its count of changed elements. */
static uint64_t note_block(
	struct payload *payload, struct payload_worker *worker, const struct tensor_block *block)
{
	if (block->number == 0)
		begin_tensor(payload, worker);
	if (worker->checksum != NULL) {
		tensor_checksum_add(worker->checksum, block->next);
		if (is_last(payload, block))
			tensor_checksum_result(
				worker->checksum, payload->tensors[block->tensor].checksum);
	}
	const uint64_t changed = count_changed(payload, block);
	worker->changed += changed;
	return changed;
}

/* Adds bytes to the frame. Compressed bytes go to the worker's stream. */
static int add_to_frame(
	struct payload *payload, unsigned number, struct span bytes, bool last, struct error *err)
{
	struct payload_worker *const worker = &payload->workers[number];
	buffer_reset(&worker->made);
	zstd_writer_add(worker->zstd, bytes, last, &worker->made);
	if (buffer_check(&worker->made, "a tensor of the delta", err) != 0)
		return -1;
	return spool_add(payload->spool, number * PAYLOAD_STREAMS, buffer_span(&worker->made), err);
}

static void begin_frame(struct payload *payload, unsigned number, uint64_t bytes)
{
	struct payload_worker *const worker = &payload->workers[number];
	worker->begun = true;
	worker->at = spool_end(payload->spool, number * PAYLOAD_STREAMS);
	zstd_writer_begin(worker->zstd, bytes);
}

static void end_frame(struct payload *payload, unsigned number, const struct tensor_block *block)
{
	const struct payload_worker *const worker = &payload->workers[number];
	const unsigned stream = number * PAYLOAD_STREAMS;
	ASSERT(worker->begun);
	*payload_piece(payload, block) = (struct payload_piece){
		.stream = stream,
		.at = worker->at,
		.bytes = spool_end(payload->spool, stream) - worker->at,
		.changed = worker->changed,
	};
}

static int add_zeros(struct payload *payload, unsigned number, uint64_t bytes, struct error *err)
{
	uint8_t *const zeros = payload->workers[number].block;
	memset(zeros, 0, BLOCK_BYTES_MAX);
	for (uint64_t at = 0; at < bytes; at += BLOCK_BYTES_MAX)
		if (add_to_frame(payload, number,
			    span_of(zeros,
				    bytes - at < BLOCK_BYTES_MAX ? (size_t)(bytes - at)
								 : BLOCK_BYTES_MAX),
			    false, err) != 0)
			return -1;
	return 0;
}

static void put_over(uint8_t *into, const uint8_t *a, const uint8_t *b, size_t len)
{
	for (size_t i = 0; i < len; i++)
		into[i] = a[i] ^ b[i];
}

static int payload_slime_take_xor(struct payload *payload, unsigned number,
	const struct tensor_block *block, struct error *err)
{
	struct payload_worker *const worker = &payload->workers[number];
	const uint64_t changed = note_block(payload, worker, block);
	const bool last = is_last(payload, block);
	if (!worker->begun) {
		if (changed == 0)
			return 0;
		begin_frame(payload, number, schema_tensor(payload->schema, block->tensor)->bytes);
		if (add_zeros(payload, number, block->at, err) != 0)
			return -1;
	}
	put_over(worker->block, block->base.data, block->next.data, block->next.len);
	if (add_to_frame(payload, number, span_of(worker->block, block->next.len), last, err) != 0)
		return -1;
	if (last)
		end_frame(payload, number, block);
	return 0;
}

static int refuse_large(const struct schema_tensor *tensor, struct error *err)
{
	return error_set(err, ERROR_UNSUPPORTED,
		"tensor '%.*s' is over 4 GiB and changed: slime-overwrite cannot address it",
		(int)(tensor->name.len < 120 ? tensor->name.len : 120), tensor->name.data);
}

/* Adds the positions and values of the changed bytes to their streams. */
static int gather(struct payload *payload, unsigned number, const struct tensor_block *block,
	struct error *err)
{
	uint8_t positions[GATHERED_BYTES];
	uint8_t values[GATHERED_BYTES / POSITION_BYTES];
	size_t count = 0;
	for (size_t i = 0; i < block->next.len; i++) {
		if (block->base.data[i] != block->next.data[i]) {
			const uint32_t position = (uint32_t)(block->at + i);
			for (unsigned k = 0; k < POSITION_BYTES; k++)
				positions[POSITION_BYTES * count + k] =
					(uint8_t)(position >> (8 * k));
			values[count++] = block->next.data[i];
		}
		if (count < sizeof(values) && (i + 1 < block->next.len || count == 0))
			continue;
		if (spool_add(payload->spool, number * PAYLOAD_STREAMS + STREAM_POSITIONS,
			    span_of(positions, count * POSITION_BYTES), err) != 0 ||
			spool_add(payload->spool, number * PAYLOAD_STREAMS + STREAM_VALUES,
				span_of(values, count), err) != 0)
			return -1;
		count = 0;
	}
	return 0;
}

static int add_list(
	struct payload *payload, unsigned number, unsigned list, bool last, struct error *err)
{
	const size_t stream = number * PAYLOAD_STREAMS + list;
	const uint64_t bytes = spool_end(payload->spool, stream);
	uint8_t *const piece = payload->workers[number].block;
	for (uint64_t at = 0; at < bytes; at += BLOCK_BYTES_MAX) {
		const size_t len =
			bytes - at < BLOCK_BYTES_MAX ? (size_t)(bytes - at) : BLOCK_BYTES_MAX;
		if (spool_read(payload->spool, stream, at, piece, len, err) != 0)
			return -1;
		if (add_to_frame(payload, number, span_of(piece, len), last && at + len == bytes,
			    err) != 0)
			return -1;
	}
	spool_rewind(payload->spool, stream);
	return 0;
}

static int write_lists(struct payload *payload, unsigned number, struct error *err)
{
	const uint64_t count = spool_end(payload->spool, number * PAYLOAD_STREAMS + STREAM_VALUES);
	uint8_t text[POSITION_BYTES];
	for (unsigned i = 0; i < POSITION_BYTES; i++)
		text[i] = (uint8_t)(count >> (8 * i));
	begin_frame(payload, number, POSITION_BYTES + (POSITION_BYTES + 1) * count);
	if (add_to_frame(payload, number, span_of(text, sizeof(text)), false, err) != 0)
		return -1;
	return add_list(payload, number, STREAM_POSITIONS, false, err) != 0
		? -1
		: add_list(payload, number, STREAM_VALUES, true, err);
}

static int payload_slime_take_overwrite(struct payload *payload, unsigned number,
	const struct tensor_block *block, struct error *err)
{
	struct payload_worker *const worker = &payload->workers[number];
	const struct schema_tensor *const tensor = schema_tensor(payload->schema, block->tensor);
	const uint64_t changed = note_block(payload, worker, block);
	if (changed > 0 && tensor->bytes > UINT32_MAX)
		return refuse_large(tensor, err);
	if (changed > 0 && gather(payload, number, block, err) != 0)
		return -1;
	if (!is_last(payload, block) || worker->changed == 0)
		return 0;
	if (write_lists(payload, number, err) != 0)
		return -1;
	end_frame(payload, number, block);
	return 0;
}

static unsigned payload_slime_layout(struct payload *payload, struct payload_tensor *tensor,
	struct payload_part parts[PAYLOAD_PARTS])
{
	(void)payload;
	parts[0] = (struct payload_part){
		.suffix = "", .dtype = DTYPE_U8, .count = tensor->pieces[0].bytes};
	return 1;
}

static int payload_slime_write(
	struct payload *payload, unsigned worker, struct payload_tensor *tensor, struct error *err)
{
	return payload_copy(payload, worker, &tensor->pieces[0], tensor->file, tensor->at[0], err);
}

const struct payload_ops payload_xor = {
	.keeps_tensors = true,
	.block = payload_slime_take_xor,
	.layout = payload_slime_layout,
	.write = payload_slime_write,
};
const struct payload_ops payload_overwrite = {
	.keeps_tensors = true,
	.block = payload_slime_take_overwrite,
	.layout = payload_slime_layout,
	.write = payload_slime_write,
};
