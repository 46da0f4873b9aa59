/* TRL: positions are united window by window, and the value of the last delta counts. A delta does
 * not say how long its tensors are, so a tensor is as long as its last changed position needs it.
 * In each window the deltas write their values in order into one array and mark the positions; the
 * marks then give the united positions in ascending order. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "weights/delta/fold_plain.h"
#include "weights/model/parallel.h"

enum {
	WINDOW = 65536,
	ELEMENT_BYTES = 2,
	MARK_WORDS = WINDOW / 64,
	BLOCK_WINDOWS = BLOCK_CODE_ELEMENTS / WINDOW
};

static int fold_plain_trl_size(
	const struct delta_entry *entry, uint64_t *out_elements, struct error *err)
{
	struct index_decoder decoder;
	size_t found = 0;
	int result = 0;
	if (entry->kind != DELTA_ENTRY_SPARSE)
		return error_set(err, ERROR_UNSUPPORTED,
			"it is stored whole, which does not fold without a base: give --base");
	uint16_t *const positions = memory_new_array(WINDOW, sizeof(positions[0]));
	index_decoder_init(&decoder, &entry->code, entry->index, INDEX_ELEMENTS_MAX);
	*out_elements = 0;
	for (uint64_t start = 0;
		result == 0 && (decoder.has_pending || decoder.taken < decoder.data.len);
		start += WINDOW) {
		/* skips windows without positions */
		if (decoder.has_pending)
			start = decoder.pending - decoder.pending % WINDOW;
		result = index_decoder_take(&decoder, start, WINDOW, positions, &found, err);
		if (found > 0)
			*out_elements = start + positions[found - 1] + 1;
	}
	free(positions);
	return result;
}

/* The lists of one tensor, one for each delta that has it, and one window over them. */
struct united {
	struct index_decoder *decoders;
	const uint8_t **values;
	size_t count;
	uint16_t positions[WINDOW];
	uint16_t window[WINDOW];
	uint64_t marks[MARK_WORDS];
};

static int overlay(struct united *united, uint64_t start, size_t len, struct error *err)
{
	memset(united->marks, 0, sizeof(united->marks));
	for (size_t i = 0; i < united->count; i++) {
		size_t found = 0;
		if (index_decoder_take(
			    &united->decoders[i], start, len, united->positions, &found, err) != 0)
			return -1;
		for (size_t k = 0; k < found; k++) {
			const uint16_t position = united->positions[k];
			memcpy(&united->window[position], united->values[i] + ELEMENT_BYTES * k,
				ELEMENT_BYTES);
			united->marks[position / 64] |= UINT64_C(1) << position % 64;
		}
		united->values[i] += ELEMENT_BYTES * found;
	}
	return 0;
}

/* Adds the window as a run of payload_trl: u32 count, positions, values. */
static void add_run(
	struct united *united, uint64_t start, struct payload_piece *piece, struct buffer *out)
{
	uint32_t count = 0;
	for (size_t word = 0; word < MARK_WORDS; word++)
		for (uint64_t rest = united->marks[word]; rest != 0; rest &= rest - 1)
			united->positions[count++] =
				(uint16_t)(word * 64 + (size_t)__builtin_ctzll(rest));
	payload_trl_note(piece, start, united->positions, count);
	buffer_add(out, &count, sizeof(count));
	buffer_add(out, united->positions, count * sizeof(united->positions[0]));
	for (size_t i = 0; i < count; i++)
		buffer_add(out, &united->window[united->positions[i]], ELEMENT_BYTES);
}

static int unite_block(struct fold_plain *plain, unsigned worker, struct united *united,
	const struct payload_tensor *tensor, uint64_t block, struct error *err)
{
	struct buffer *const made = &plain->payload.workers[worker].made;
	struct payload_piece *const piece = &tensor->pieces[block];
	const uint64_t elements = tensor->facts->bytes / ELEMENT_BYTES;
	buffer_reset(made);
	for (uint64_t i = 0; i < BLOCK_WINDOWS; i++) {
		const uint64_t start = (block * BLOCK_WINDOWS + i) * WINDOW;
		if (start >= elements)
			break;
		if (overlay(united, start,
			    elements - start < WINDOW ? (size_t)(elements - start) : WINDOW,
			    err) != 0)
			return -1;
		add_run(united, start, piece, made);
	}
	if (buffer_check(made, "a block of the delta", err) != 0)
		return -1;
	return piece->changed > 0
		? payload_spool(&plain->payload, worker, piece, buffer_span(made), err)
		: 0;
}

static void open_lists(
	const struct fold_plain *plain, const struct payload_tensor *tensor, struct united *united)
{
	united->decoders = memory_new_array(plain->params->count, sizeof(united->decoders[0]));
	united->values = memory_new_array(plain->params->count, sizeof(united->values[0]));
	for (size_t i = 0; i < plain->params->count; i++) {
		const struct delta_entry *const entry =
			delta_reader_find(plain->readers[i], tensor->facts->name);
		if (entry == NULL || entry->count == 0)
			continue;
		index_decoder_init(&united->decoders[united->count], &entry->code, entry->index,
			tensor->facts->bytes / ELEMENT_BYTES);
		united->values[united->count++] = entry->values.data;
	}
}

static int fold_plain_trl_unite_tensor(void *state, size_t item, unsigned worker, struct error *err)
{
	struct fold_plain *const plain = state;
	const struct payload_tensor *const tensor = &plain->payload.tensors[item];
	struct united *const united = memory_new(sizeof(*united));
	int result = 0;
	open_lists(plain, tensor, united);
	for (uint64_t block = 0; block < tensor->piece_count && result == 0; block++)
		result = unite_block(plain, worker, united, tensor, block, err);
	free(united->decoders);
	free(united->values);
	free(united);
	return result;
}

static int fold_plain_trl_fill(struct fold_plain *plain, struct error *err)
{
	return parallel_run(plain->payload.worker_count, schema_count(plain->schema),
		fold_plain_trl_unite_tensor, plain, err);
}

const struct fold_family fold_family_trl = {
	.size = fold_plain_trl_size, .dtype = DTYPE_BF16, .fill = fold_plain_trl_fill};
