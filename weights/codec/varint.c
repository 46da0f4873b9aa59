#include "weights/codec/varint.h"

size_t varint_write(uint32_t value, uint8_t into[VARINT_BYTES_MAX])
{
	size_t bytes = 0;
	uint32_t rest = value;
	for (; rest >= 0x80; rest >>= 7)
		into[bytes++] = (uint8_t)(rest | 0x80);
	into[bytes++] = (uint8_t)rest;
	return bytes;
}

bool varint_read(struct span *rest, uint32_t *out_value)
{
	uint64_t value = 0;
	for (size_t i = 0; i < VARINT_BYTES_MAX && i < rest->len; i++) {
		const uint8_t byte = rest->data[i];
		value |= (uint64_t)(byte & 0x7f) << (7 * i);
		if (byte & 0x80)
			continue;
		if ((byte == 0 && i > 0) || value > UINT32_MAX)
			return false;
		*out_value = (uint32_t)value;
		*rest = span_slice(*rest, i + 1, rest->len);
		return true;
	}
	return false;
}
