#include "weights/diff_tensor.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "weights/element_scan.h"

/* Values and indexes of several blocks are gathered before they are written: at 1 % of change a block alone is a few KB. */
enum { GATHERED_ELEMENTS = 4 * ELEMENT_SCAN_BLOCK, PIECE_BYTES = 8 << 20, HASHED_BYTES = 128 << 10 };

void diff_scratch_init(struct diff_scratch *const scratch)
{
	scratch->positions = memory_new_array(ELEMENT_SCAN_BLOCK, sizeof(uint16_t));
	scratch->indexes = memory_new_array(GATHERED_ELEMENTS, 4);
	scratch->values = memory_new_array(GATHERED_ELEMENTS, 2);
	scratch->base = xxh3_stream_new();
	scratch->next = xxh3_stream_new();
}

void diff_scratch_release(struct diff_scratch *const scratch)
{
	free(scratch->positions);
	free(scratch->indexes);
	free(scratch->values);
	xxh3_stream_free(scratch->base);
	xxh3_stream_free(scratch->next);
}

static void find_whole(struct diff_tensor *const tensor, const struct tensor_hashes *const hashes)
{
	const unsigned bits = dtype_bits(tensor->facts->dtype);
	const unsigned width = bits < 8 ? 1 : bits / 8;
	for (size_t from = 0; from < tensor->next.len; from += HASHED_BYTES) {
		const struct span base = span_slice(tensor->base, from, HASHED_BYTES);
		const struct span next = span_slice(tensor->next, from, HASHED_BYTES);
		tensor->changed += element_scan_count(base.data, next.data, next.len, width);
		if (hashes->base != NULL)
			xxh3_stream_add(hashes->base, base);
		if (hashes->next != NULL)
			xxh3_stream_add(hashes->next, next);
	}
	tensor->kind = tensor->changed > 0 ? DIFF_WHOLE : DIFF_SAME;
}

static void find_sparse(struct diff_tensor *const tensor, const struct tensor_hashes *const hashes, _Atomic int64_t *const budget,
	uint16_t *const positions)
{
	tensor_changes_find(&tensor->changes, tensor->base, tensor->next, hashes, budget, positions);
	tensor->changed = tensor->changes.count;
	tensor->kind = tensor->changed > 0 ? DIFF_SPARSE : DIFF_SAME;
	if (tensor->changed == 0)
		tensor_changes_release(&tensor->changes);
}

void diff_tensor_find(struct diff_tensor *const tensor, struct digest128 *const out_base, struct digest128 *const out_next,
	_Atomic int64_t *const budget, struct diff_scratch *const scratch)
{
	const struct tensor_hashes hashes = {out_base != NULL ? scratch->base : NULL, out_next != NULL ? scratch->next : NULL};
	ASSERT(tensor->base.len == tensor->next.len);
	tensor->elements = (uint64_t)tensor->next.len * 8 / dtype_bits(tensor->facts->dtype);
	xxh3_stream_reset(scratch->base);
	xxh3_stream_reset(scratch->next);
	if (tensor->facts->dtype == DTYPE_BF16 && tensor->elements < INDEX_ELEMENTS_MAX)
		find_sparse(tensor, &hashes, budget, scratch->positions);
	else
		find_whole(tensor, &hashes);
	if (out_base != NULL)
		*out_base = xxh3_stream_result(scratch->base);
	if (out_next != NULL)
		*out_next = xxh3_stream_result(scratch->next);
}

static int write_whole(const struct diff_tensor *const tensor, const struct file_ops *const ops, struct error *const err)
{
	for (size_t from = 0; from < tensor->next.len; from += PIECE_BYTES) {
		const struct span piece = span_slice(tensor->next, from, PIECE_BYTES);
		if (file_write_at(ops, tensor->file->fd, piece, (off_t)(tensor->values_at + from), tensor->file->path, err) != 0)
			return -1;
	}
	return 0;
}

static void gather_values(const uint8_t *const block, const uint16_t *const positions, const size_t count, uint8_t *const out)
{
	for (size_t i = 0; i < count; i++)
		memcpy(out + 2 * i, block + 2 * (size_t)positions[i], 2);
}

/* Where the second pass over one tensor stands. */
struct gathering {
	struct index_encoder encoder;
	size_t elements;     /* gathered and not yet written */
	uint64_t written;    /* elements */
	size_t index_bytes;  /* per element */
};

static int flush(const struct diff_tensor *const tensor, const struct file_ops *const ops, const struct diff_scratch *const scratch,
	struct gathering *const state, struct error *const err)
{
	const struct span indexes = span_of(scratch->indexes, state->elements * state->index_bytes);
	const struct span values = span_of(scratch->values, state->elements * 2);
	const off_t index_at = (off_t)(tensor->index_at + state->written * state->index_bytes);
	const off_t values_at = (off_t)(tensor->values_at + state->written * 2);
	if (state->elements == 0)
		return 0;
	if (file_write_at(ops, tensor->file->fd, indexes, index_at, tensor->file->path, err) != 0)
		return -1;
	if (file_write_at(ops, tensor->file->fd, values, values_at, tensor->file->path, err) != 0)
		return -1;
	state->written += state->elements;
	state->elements = 0;
	return 0;
}

static int write_sparse(const struct diff_tensor *const tensor, const struct file_ops *const ops, struct diff_scratch *const scratch,
	struct error *const err)
{
	struct gathering state = {.index_bytes = index_form_bytes(tensor->form)};
	struct tensor_changes_cursor cursor = {0};
	index_encoder_init(&state.encoder, tensor->form);
	for (uint64_t block = 0; block < tensor_changes_blocks(&tensor->changes); block++) {
		size_t count = 0;
		const uint16_t *const positions = tensor_changes_next(&tensor->changes, &cursor, scratch->positions, &count);
		const uint64_t start = block * ELEMENT_SCAN_BLOCK;
		if (state.elements + count > GATHERED_ELEMENTS && flush(tensor, ops, scratch, &state, err) != 0)
			return -1;
		index_encoder_add(&state.encoder, start, positions, count, scratch->indexes + state.elements * state.index_bytes);
		gather_values(tensor->next.data + 2 * start, positions, count, scratch->values + 2 * state.elements);
		state.elements += count;
	}
	if (flush(tensor, ops, scratch, &state, err) != 0)
		return -1;
	ASSERT(state.written == tensor->changed);
	return 0;
}

int diff_tensor_write(const struct diff_tensor *const tensor, const struct file_ops *const ops, struct diff_scratch *const scratch,
	struct error *const err)
{
	if (tensor->kind == DIFF_SAME)
		return 0;
	return tensor->kind == DIFF_WHOLE ? write_whole(tensor, ops, err) : write_sparse(tensor, ops, scratch, err);
}

void diff_tensor_release(struct diff_tensor *const tensor)
{
	if (tensor->kind == DIFF_SPARSE)
		tensor_changes_release(&tensor->changes);
}
