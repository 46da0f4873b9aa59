#include "chunker/chunk.h"

#include <endian.h>
#include <string.h>

enum { WORDS = 4, WORD_DIGITS = 16, WORD_BYTES = 8 };

static uint64_t load_word(const struct chunk_id *id, size_t word);
static int digit_value(uint8_t digit);

bool chunk_id_equal(const struct chunk_id *a, const struct chunk_id *b)
{
	return memcmp(a->bytes, b->bytes, CHUNK_ID_BYTES) == 0;
}

void chunk_id_format(const struct chunk_id *id, char out[CHUNK_ID_TEXT_BYTES])
{
	static const char digits[] = "0123456789abcdef";
	for (size_t word = 0; word < WORDS; word++) {
		uint64_t value = load_word(id, word);
		for (size_t at = WORD_DIGITS; at-- > 0; value >>= 4)
			out[word * WORD_DIGITS + at] = digits[value & 15];
	}
	out[WORDS * WORD_DIGITS] = '\0';
}

bool chunk_id_parse(struct span text, struct chunk_id *out_id)
{
	if (text.len != WORDS * WORD_DIGITS)
		return false;
	struct chunk_id id;
	for (size_t word = 0; word < WORDS; word++) {
		uint64_t value = 0;
		for (size_t at = 0; at < WORD_DIGITS; at++) {
			const int digit = digit_value(text.data[word * WORD_DIGITS + at]);
			if (digit < 0)
				return false;
			value = value << 4 | (uint64_t)digit;
		}
		const uint64_t raw = htole64(value);
		memcpy(id.bytes + word * WORD_BYTES, &raw, sizeof(raw));
	}
	*out_id = id;
	return true;
}

uint64_t chunk_id_modulo_word(const struct chunk_id *id)
{
	return load_word(id, WORDS - 1);
}

static uint64_t load_word(const struct chunk_id *id, size_t word)
{
	uint64_t raw;
	memcpy(&raw, id->bytes + word * WORD_BYTES, sizeof(raw));
	return le64toh(raw);
}

/* -1 for a byte that is not a digit. Upper-case digits are refused: an id has one text form. */
static int digit_value(uint8_t digit)
{
	if (digit >= '0' && digit <= '9')
		return digit - '0';
	if (digit >= 'a' && digit <= 'f')
		return digit - 'a' + 10;
	return -1;
}
