/* TRL: positions and values. In the spool a piece has, for each run of 65536 elements: u32 count,
 * u16 positions in the run, u16 values. The form of the positions depends on the largest gap of the
 * tensor, which is known only after the walk, so positions are encoded when they are written. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "weights/codec/element_scan.h"
#include "weights/delta/payload.h"

enum { ELEMENT_BYTES = 2, RUN_BYTES = ELEMENT_SCAN_BLOCK * ELEMENT_BYTES, COUNT_BYTES = 4 };

/* One piece that is being written. */
struct writing {
	struct index_encoder encoder;
	struct buffer piece;
	struct buffer indexes;
	struct buffer values;
	uint64_t done; /* elements written */
};

static int payload_trl_take(struct payload *payload, unsigned number,
	const struct tensor_block *block, struct error *err);
static unsigned payload_trl_layout(struct payload *payload, struct payload_tensor *tensor,
	struct payload_part parts[PAYLOAD_PARTS]);
static int payload_trl_write(
	struct payload *payload, unsigned number, struct payload_tensor *tensor, struct error *err);

const struct payload_ops payload_trl = {
	.block = payload_trl_take,
	.layout = payload_trl_layout,
	.write = payload_trl_write,
};

void payload_trl_note(
	struct payload_piece *piece, uint64_t start, const uint16_t *positions, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const uint64_t position = start + positions[i];
		if (piece->changed == 0)
			piece->first = position;
		else if (position - piece->last - 1 > piece->largest_gap)
			piece->largest_gap = position - piece->last - 1;
		piece->last = position;
		piece->changed++;
	}
}

static int refuse(
	const struct payload *payload, const struct tensor_block *block, struct error *err)
{
	const struct schema_tensor *const tensor = schema_tensor(payload->schema, block->tensor);
	const char *const format = delta_format_name(payload->params->format);
	const int shown = (int)(tensor->name.len < 120 ? tensor->name.len : 120);
	if (tensor->dtype == DTYPE_BF16)
		return error_set(err, ERROR_UNSUPPORTED,
			"tensor '%.*s' has over 2^31 elements and changed: %s cannot hold it",
			shown, tensor->name.data, format);
	return error_set(err, ERROR_UNSUPPORTED,
		"tensor '%.*s' is %s and changed: %s holds only BF16", shown, tensor->name.data,
		dtype_name(tensor->dtype), format);
}

static void take_run(struct payload_worker *worker, struct payload_piece *piece, uint64_t start,
	struct span base, struct span next)
{
	const size_t found =
		element_scan(base.data, next.data, next.len / ELEMENT_BYTES, worker->positions);
	const uint32_t count = (uint32_t)found;
	payload_trl_note(piece, start, worker->positions, found);
	buffer_add(&worker->made, &count, sizeof(count));
	buffer_add(&worker->made, worker->positions, found * sizeof(worker->positions[0]));
	uint8_t *const values = buffer_reserve(&worker->made, found * ELEMENT_BYTES);
	for (size_t i = 0; values != NULL && i < found; i++)
		memcpy(values + ELEMENT_BYTES * i,
			next.data + ELEMENT_BYTES * (size_t)worker->positions[i], ELEMENT_BYTES);
	buffer_commit(&worker->made, values != NULL ? found * ELEMENT_BYTES : 0);
}

static int payload_trl_take(struct payload *payload, unsigned number,
	const struct tensor_block *block, struct error *err)
{
	const struct schema_tensor *const tensor = schema_tensor(payload->schema, block->tensor);
	struct payload_worker *const worker = &payload->workers[number];
	struct payload_piece *const piece = payload_piece(payload, block);
	if (tensor->dtype != DTYPE_BF16 || tensor->bytes / ELEMENT_BYTES >= INDEX_ELEMENTS_MAX)
		return span_equal(block->base, block->next) ? 0 : refuse(payload, block, err);
	if (worker->positions == NULL)
		worker->positions =
			memory_new_array(ELEMENT_SCAN_BLOCK, sizeof(worker->positions[0]));
	buffer_reset(&worker->made);
	for (size_t at = 0; at < block->next.len; at += RUN_BYTES)
		take_run(worker, piece, (block->at + at) / ELEMENT_BYTES,
			span_slice(block->base, at, RUN_BYTES),
			span_slice(block->next, at, RUN_BYTES));
	if (buffer_check(&worker->made, "a block of the delta", err) != 0)
		return -1;
	return piece->changed > 0
		? payload_spool(payload, number, piece, buffer_span(&worker->made), err)
		: 0;
}

static enum index_form choose_form(
	const struct payload *payload, const struct payload_tensor *tensor)
{
	uint64_t follow = 0;
	uint64_t largest = 0;
	if (payload->params->format != DELTA_TRL_GAP)
		return INDEX_ABSOLUTE32;
	for (uint64_t i = 0; i < tensor->piece_count; i++) {
		const struct payload_piece *const piece = &tensor->pieces[i];
		if (piece->changed == 0)
			continue;
		largest = piece->first - follow > largest ? piece->first - follow : largest;
		largest = piece->largest_gap > largest ? piece->largest_gap : largest;
		follow = piece->last + 1;
	}
	return largest <= UINT16_MAX ? INDEX_GAP16 : INDEX_GAP32;
}

static unsigned payload_trl_layout(struct payload *payload, struct payload_tensor *tensor,
	struct payload_part parts[PAYLOAD_PARTS])
{
	static const enum dtype dtypes[] = {[INDEX_GAP16] = DTYPE_U16,
		[INDEX_GAP32] = DTYPE_U32,
		[INDEX_ABSOLUTE32] = DTYPE_I32};
	const bool is_v1 = payload->params->format == DELTA_TRL_V1;
	ASSERT(tensor->changed > 0);
	tensor->form = choose_form(payload, tensor);
	parts[0] = (struct payload_part){.suffix = is_v1 ? ".indices" : ".idx",
		.dtype = dtypes[tensor->form],
		.count = tensor->changed};
	parts[1] = (struct payload_part){.suffix = is_v1 ? ".values" : ".val",
		.dtype = DTYPE_BF16,
		.count = tensor->changed};
	return 2;
}

static int read_piece(struct payload *payload, const struct payload_piece *piece,
	struct buffer *out, struct error *err)
{
	buffer_reset(out);
	uint8_t *const room = buffer_reserve(out, (size_t)piece->bytes);
	if (room == NULL)
		return buffer_check(out, "a block of the delta", err);
	buffer_commit(out, (size_t)piece->bytes);
	return spool_read(
		payload->spool, piece->stream, piece->at, room, (size_t)piece->bytes, err);
}

static void encode_piece(struct writing *writing, uint64_t start, uint16_t *positions)
{
	struct span rest = buffer_span(&writing->piece);
	buffer_reset(&writing->indexes);
	buffer_reset(&writing->values);
	for (; rest.len > 0; start += ELEMENT_SCAN_BLOCK) {
		uint32_t count;
		memcpy(&count, rest.data, sizeof(count));
		rest = span_slice(rest, sizeof(count), rest.len);
		/* The spool's bytes are not aligned. */
		memcpy(positions, rest.data, count * sizeof(positions[0]));
		uint8_t *const room = buffer_reserve(
			&writing->indexes, count * index_form_bytes(writing->encoder.form));
		if (room == NULL)
			return;
		buffer_commit(&writing->indexes,
			index_encoder_add(&writing->encoder, start, positions, count, room));
		buffer_add_span(&writing->values,
			span_slice(rest, count * ELEMENT_BYTES, count * ELEMENT_BYTES));
		rest = span_slice(rest, 2 * count * ELEMENT_BYTES, rest.len);
	}
}

static int write_piece(struct payload *payload, const struct payload_tensor *tensor,
	struct writing *writing, struct error *err)
{
	const struct staged_file *const file = tensor->file;
	const uint64_t index_at = tensor->at[0] + writing->done * index_form_bytes(tensor->form);
	const uint64_t values_at = tensor->at[1] + writing->done * ELEMENT_BYTES;
	if (buffer_check(&writing->indexes, "positions of the delta", err) != 0 ||
		buffer_check(&writing->values, "values of the delta", err) != 0)
		return -1;
	writing->done += writing->values.len / ELEMENT_BYTES;
	if (file_write_at(payload->files, file->fd, buffer_span(&writing->indexes), (off_t)index_at,
		    file->path, err) != 0)
		return -1;
	return file_write_at(payload->files, file->fd, buffer_span(&writing->values),
		(off_t)values_at, file->path, err);
}

static int payload_trl_write(
	struct payload *payload, unsigned number, struct payload_tensor *tensor, struct error *err)
{
	enum { CAP_BYTES = 64 << 20 };
	struct writing writing = {0};
	int result = 0;
	(void)number;
	uint16_t *const positions = memory_new_array(ELEMENT_SCAN_BLOCK, sizeof(positions[0]));
	buffer_init(&writing.piece, CAP_BYTES);
	buffer_init(&writing.indexes, CAP_BYTES);
	buffer_init(&writing.values, CAP_BYTES);
	index_encoder_init(&writing.encoder, tensor->form);
	for (uint64_t i = 0; i < tensor->piece_count && result == 0; i++) {
		if (tensor->pieces[i].changed == 0)
			continue;
		result = read_piece(payload, &tensor->pieces[i], &writing.piece, err);
		if (result == 0) {
			encode_piece(&writing, i * BLOCK_CODE_ELEMENTS, positions);
			result = write_piece(payload, tensor, &writing, err);
		}
	}
	buffer_release(&writing.piece);
	buffer_release(&writing.indexes);
	buffer_release(&writing.values);
	free(positions);
	return result;
}
