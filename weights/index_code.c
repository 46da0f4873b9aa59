#include "weights/index_code.h"

#include <string.h>

enum { BLOCK_MAX = 65536 };

size_t index_form_bytes(const enum index_form form)
{
	return form == INDEX_GAP16 ? 2 : 4;
}

static void store16(uint8_t *const out, const uint64_t value)
{
	out[0] = (uint8_t)value;
	out[1] = (uint8_t)(value >> 8);
}

static void store32(uint8_t *const out, const uint64_t value)
{
	store16(out, value);
	store16(out + 2, value >> 16);
}

static uint64_t load16(const uint8_t *const from)
{
	return (uint64_t)from[0] | (uint64_t)from[1] << 8;
}

static uint64_t load32(const uint8_t *const from)
{
	return load16(from) | load16(from + 2) << 16;
}

void index_encoder_init(struct index_encoder *const encoder, const enum index_form form)
{
	*encoder = (struct index_encoder){.form = form};
}

static void encode_gaps16(struct index_encoder *const encoder, const uint64_t block_start, const uint16_t *const positions,
	const size_t count,
	uint8_t *const out)
{
	uint64_t next = encoder->next;
	uint64_t bits = 0; /* of all gaps: the caller has chosen the form by the largest */
	for (size_t i = 0; i < count; i++) {
		const uint64_t position = block_start + positions[i];
		store16(out + 2 * i, position - next);
		bits |= position - next;
		next = position + 1;
	}
	ASSERT(bits <= UINT16_MAX);
	encoder->next = next;
}

static void encode_32(struct index_encoder *const encoder, const uint64_t block_start, const uint16_t *const positions, const size_t count,
	uint8_t *const out)
{
	const bool gaps = encoder->form == INDEX_GAP32;
	for (size_t i = 0; i < count; i++) {
		const uint64_t position = block_start + positions[i];
		store32(out + 4 * i, gaps ? position - encoder->next : position);
		encoder->next = position + 1;
	}
}

size_t index_encoder_add(struct index_encoder *const encoder, const uint64_t block_start, const uint16_t *const positions,
	const size_t count,
	uint8_t *const out)
{
	if (encoder->form == INDEX_GAP16)
		encode_gaps16(encoder, block_start, positions, count, out);
	else
		encode_32(encoder, block_start, positions, count, out);
	return count * index_form_bytes(encoder->form);
}

void index_decoder_init(struct index_decoder *const decoder, const enum index_form form, const struct span data, const uint64_t elements)
{
	ASSERT(data.len % index_form_bytes(form) == 0);
	*decoder = (struct index_decoder){.form = form, .data = data, .elements = elements};
}

/* Decodes one more position into `pending`. `next` is at most 2^63 and a gap below 2^32, so nothing overflows. */
static int decode_one(struct index_decoder *const decoder, struct error *const err)
{
	const uint8_t *const from = decoder->data.data + decoder->taken;
	const uint64_t value = decoder->form == INDEX_GAP16 ? load16(from) : load32(from);
	const bool absolute = decoder->form == INDEX_ABSOLUTE32;
	const uint64_t position = absolute ? value : decoder->next + value;
	if (absolute && value > INT32_MAX)
		return error_set(err, ERROR_INVALID, "the index %lld is negative", (long long)(int32_t)(uint32_t)value);
	if (position < decoder->next)
		return error_set(err, ERROR_INVALID, "the index %llu is not above the one before it", (unsigned long long)position);
	if (position >= decoder->elements)
		return error_set(err, ERROR_INVALID, "the index %llu lies outside of %llu elements", (unsigned long long)position,
			(unsigned long long)decoder->elements);
	decoder->taken += index_form_bytes(decoder->form);
	decoder->next = position + 1;
	decoder->pending = position;
	decoder->has_pending = true;
	return 0;
}

int index_decoder_take(struct index_decoder *const decoder, const uint64_t block_start, const size_t count, uint16_t *const positions,
	size_t *const out_found, struct error *const err)
{
	ASSERT(count <= BLOCK_MAX);
	const uint64_t block_end = block_start + count;
	size_t found = 0;
	while (decoder->has_pending || decoder->taken < decoder->data.len) {
		if (!decoder->has_pending && decode_one(decoder, err) != 0)
			return -1;
		if (decoder->pending >= block_end)
			break;
		ASSERT(decoder->pending >= block_start);
		positions[found++] = (uint16_t)(decoder->pending - block_start);
		decoder->has_pending = false;
	}
	*out_found = found;
	return 0;
}
