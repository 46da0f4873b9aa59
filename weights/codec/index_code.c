/* The encoder writes each position as it comes. The decoder reads one position ahead: a position
 * that lies behind the wanted block stays pending for a later block. Numbers come from files that
 * others made, so each is checked before it is used. */
#include "weights/codec/index_code.h"

#include <string.h>

enum { BLOCK_MAX = 65536 };

static void encode_gaps16(struct index_encoder *encoder, uint64_t block_start,
	const uint16_t *positions, size_t count, uint8_t *out);
static void store16(uint8_t *out, uint64_t value);
static void encode_32(struct index_encoder *encoder, uint64_t block_start,
	const uint16_t *positions, size_t count, uint8_t *out);
static void store32(uint8_t *out, uint64_t value);
static int decode_one(struct index_decoder *decoder, struct error *err);
static int decode_grid(struct index_decoder *decoder, uint64_t *out, struct error *err);
static uint64_t load_width(const struct index_decoder *decoder, size_t at, unsigned bytes);
static uint64_t load16(const uint8_t *from);
static uint64_t load32(const uint8_t *from);
static int refuse_negative(uint64_t value, struct error *err);
static int decode_line(struct index_decoder *decoder, uint64_t *out, struct error *err);

size_t index_form_bytes(enum index_form form)
{
	ASSERT(form != INDEX_GRID);
	return form == INDEX_GAP16 ? 2 : 4;
}

size_t index_code_bytes(const struct index_code *code)
{
	return code->form == INDEX_GRID ? code->row_bytes + code->col_bytes
					: index_form_bytes(code->form);
}

void index_encoder_init(struct index_encoder *encoder, enum index_form form)
{
	ASSERT(form == INDEX_GAP16 || form == INDEX_GAP32 || form == INDEX_ABSOLUTE32);
	*encoder = (struct index_encoder){.form = form};
}

size_t index_encoder_add(struct index_encoder *encoder, uint64_t block_start,
	const uint16_t *positions, size_t count, uint8_t *out)
{
	if (encoder->form == INDEX_GAP16)
		encode_gaps16(encoder, block_start, positions, count, out);
	else
		encode_32(encoder, block_start, positions, count, out);
	return count * index_form_bytes(encoder->form);
}

void index_decoder_init(struct index_decoder *decoder, const struct index_code *code,
	struct span data, uint64_t elements)
{
	*decoder = (struct index_decoder){
		.code = *code, .step = index_code_bytes(code), .data = data, .elements = elements};
	ASSERT(data.len % decoder->step == 0);
	ASSERT(code->form != INDEX_GRID || (code->columns > 0 && elements % code->columns == 0));
	decoder->count = data.len / decoder->step;
	decoder->rows = code->form == INDEX_GRID ? elements / code->columns : 0;
}

int index_decoder_take(struct index_decoder *decoder, uint64_t block_start, size_t count,
	uint16_t *positions, size_t *out_found, struct error *err)
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

static void encode_gaps16(struct index_encoder *encoder, uint64_t block_start,
	const uint16_t *positions, size_t count, uint8_t *out)
{
	uint64_t next = encoder->next;
	uint64_t bits = 0; /* of all gaps; the caller has chosen the form by the largest gap */
	for (size_t i = 0; i < count; i++) {
		const uint64_t position = block_start + positions[i];
		store16(out + 2 * i, position - next);
		bits |= position - next;
		next = position + 1;
	}
	ASSERT(bits <= UINT16_MAX);
	encoder->next = next;
}

static void store16(uint8_t *out, uint64_t value)
{
	out[0] = (uint8_t)value;
	out[1] = (uint8_t)(value >> 8);
}

static void encode_32(struct index_encoder *encoder, uint64_t block_start,
	const uint16_t *positions, size_t count, uint8_t *out)
{
	const bool gaps = encoder->form == INDEX_GAP32;
	for (size_t i = 0; i < count; i++) {
		const uint64_t position = block_start + positions[i];
		store32(out + 4 * i, gaps ? position - encoder->next : position);
		encoder->next = position + 1;
	}
}

static void store32(uint8_t *out, uint64_t value)
{
	store16(out, value);
	store16(out + 2, value >> 16);
}

/* Decodes one more position into `pending`. */
static int decode_one(struct index_decoder *decoder, struct error *err)
{
	uint64_t position = 0;
	const bool is_grid = decoder->code.form == INDEX_GRID;
	if ((is_grid ? decode_grid(decoder, &position, err)
		     : decode_line(decoder, &position, err)) != 0)
		return -1;
	if (position < decoder->next)
		return error_set(err, ERROR_INVALID,
			"the index %llu is not above the one before it",
			(unsigned long long)position);
	if (position >= decoder->elements)
		return error_set(err, ERROR_INVALID, "the index %llu lies outside of %llu elements",
			(unsigned long long)position, (unsigned long long)decoder->elements);
	decoder->taken += decoder->step;
	decoder->next = position + 1;
	decoder->pending = position;
	decoder->has_pending = true;
	return 0;
}

/* Nothing overflows: rows and columns are at most 2^63, a step is below 2^31, and the product is
 * made only of a row and a column inside the tensor. */
static int decode_grid(struct index_decoder *decoder, uint64_t *out, struct error *err)
{
	const struct index_code *const code = &decoder->code;
	const size_t columns_at = decoder->count * code->row_bytes;
	const size_t number = decoder->number++;
	const uint64_t down = load_width(decoder, number * code->row_bytes, code->row_bytes);
	const uint64_t along =
		load_width(decoder, columns_at + number * code->col_bytes, code->col_bytes);
	if (down > INT32_MAX || along > INT32_MAX)
		return refuse_negative(down > INT32_MAX ? down : along, err);
	decoder->row += down;
	decoder->column = down > 0 ? along : decoder->column + along;
	if (decoder->column >= code->columns || decoder->row >= decoder->rows)
		return error_set(err, ERROR_INVALID,
			"row %llu, column %llu lies outside of %llu rows of %llu columns",
			(unsigned long long)decoder->row, (unsigned long long)decoder->column,
			(unsigned long long)decoder->rows, (unsigned long long)code->columns);
	*out = decoder->row * code->columns + decoder->column;
	return 0;
}

static uint64_t load_width(const struct index_decoder *decoder, size_t at, unsigned bytes)
{
	const uint8_t *const from = decoder->data.data + at;
	return bytes == 1 ? from[0] : bytes == 2 ? load16(from) : load32(from);
}

static uint64_t load16(const uint8_t *from)
{
	return (uint64_t)from[0] | (uint64_t)from[1] << 8;
}

static uint64_t load32(const uint8_t *from)
{
	return load16(from) | load16(from + 2) << 16;
}

static int refuse_negative(uint64_t value, struct error *err)
{
	return error_set(err, ERROR_INVALID, "the index %lld is negative",
		(long long)(int32_t)(uint32_t)value);
}

/* Nothing overflows, because `next` is at most 2^63 and a gap is below 2^32. */
static int decode_line(struct index_decoder *decoder, uint64_t *out, struct error *err)
{
	const uint8_t *const from = decoder->data.data + decoder->taken;
	const enum index_form form = decoder->code.form;
	const uint64_t value = form == INDEX_GAP16 ? load16(from) : load32(from);
	const bool is_signed = form == INDEX_ABSOLUTE32 || form == INDEX_STEP32;
	if (is_signed && value > INT32_MAX)
		return refuse_negative(value, err);
	*out = form == INDEX_ABSOLUTE32 || (form == INDEX_STEP32 && decoder->next == 0) ? value
		: form == INDEX_STEP32 ? decoder->next - 1 + value
				       : decoder->next + value;
	return 0;
}
