#include "chunker/xorb_record.h"

static void put_24(uint8_t *out, uint32_t value);
static uint32_t get_24(const uint8_t *from);

void xorb_record_put_header(
	const struct xorb_record_header *header, uint8_t out[XORB_RECORD_HEADER_BYTES])
{
	out[0] = 0;
	put_24(out + 1, header->stored);
	out[4] = header->codec;
	put_24(out + 5, header->size);
}

bool xorb_record_get_header(
	const uint8_t from[XORB_RECORD_HEADER_BYTES], struct xorb_record_header *out)
{
	*out = (struct xorb_record_header){
		.codec = from[4], .stored = get_24(from + 1), .size = get_24(from + 5)};
	return from[0] == 0;
}

static void put_24(uint8_t *out, uint32_t value)
{
	for (unsigned i = 0; i < 3; i++)
		out[i] = (uint8_t)(value >> (8 * i));
}

static uint32_t get_24(const uint8_t *from)
{
	return from[0] | (uint32_t)from[1] << 8 | (uint32_t)from[2] << 16;
}
