/* Every function accepts the empty span, whose data may be NULL: memcmp and memchr are not called
 * for it. */
#include "base/span.h"

#include <string.h>

static uint8_t lowered(uint8_t byte);
static bool is_blank(uint8_t byte);

struct span span_of(const void *data, size_t len)
{
	return (struct span){data, len};
}

struct span span_text(const char *text)
{
	return (struct span){(const uint8_t *)text, text != NULL ? strlen(text) : 0};
}

bool span_equal(struct span a, struct span b)
{
	return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

bool span_equal_text(struct span a, const char *text)
{
	return span_equal(a, span_text(text));
}

bool span_equal_nocase(struct span a, const char *text)
{
	return span_same_nocase(a, span_text(text));
}

bool span_same_nocase(struct span a, struct span b)
{
	if (a.len != b.len)
		return false;
	for (size_t i = 0; i < a.len; i++)
		if (lowered(a.data[i]) != lowered(b.data[i]))
			return false;
	return true;
}

bool span_starts(struct span whole, struct span prefix)
{
	return whole.len >= prefix.len && span_equal(span_slice(whole, 0, prefix.len), prefix);
}

bool span_ends_text(struct span whole, const char *suffix)
{
	const struct span end = span_text(suffix);
	return whole.len >= end.len &&
		span_equal(span_slice(whole, whole.len - end.len, end.len), end);
}

int span_compare(struct span a, struct span b)
{
	const size_t common = a.len < b.len ? a.len : b.len;
	const int order = common > 0 ? memcmp(a.data, b.data, common) : 0;
	return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

struct span span_slice(struct span whole, size_t from, size_t len)
{
	if (from >= whole.len)
		return (struct span){whole.len > 0 ? whole.data + whole.len : whole.data, 0};
	const size_t rest = whole.len - from;
	return (struct span){whole.data + from, len < rest ? len : rest};
}

struct span span_trim(struct span text)
{
	size_t from = 0;
	size_t to = text.len;
	while (from < to && is_blank(text.data[from]))
		from++;
	while (to > from && is_blank(text.data[to - 1]))
		to--;
	return span_slice(text, from, to - from);
}

/* An exhausted `*rest` has NULL data, so that "a," gives "a" and then the empty piece after the
 * comma. */
bool span_split(struct span *rest, char separator, struct span *out_piece)
{
	if (rest->data == NULL)
		return false;
	const ptrdiff_t at = span_find(*rest, separator);
	if (at < 0) {
		*out_piece = *rest;
		*rest = (struct span){NULL, 0};
		return true;
	}
	*out_piece = span_slice(*rest, 0, (size_t)at);
	*rest = (struct span){rest->data + at + 1, rest->len - (size_t)at - 1};
	return true;
}

ptrdiff_t span_find(struct span whole, char byte)
{
	const uint8_t *const at = whole.len > 0 ? memchr(whole.data, byte, whole.len) : NULL;
	return at != NULL ? at - whole.data : -1;
}

bool span_parse_u64(struct span text, uint64_t *out_value)
{
	uint64_t value = 0;
	for (size_t i = 0; i < text.len; i++) {
		const uint8_t digit = (uint8_t)(text.data[i] - '0');
		if (digit > 9 || __builtin_mul_overflow(value, 10U, &value) ||
			__builtin_add_overflow(value, digit, &value))
			return false;
	}
	if (text.len == 0)
		return false;
	*out_value = value;
	return true;
}

bool span_equal_secret(struct span a, struct span b)
{
	if (a.len != b.len)
		return false;
	volatile uint8_t difference = 0;
	for (size_t i = 0; i < a.len; i++)
		difference = (uint8_t)(difference | (a.data[i] ^ b.data[i]));
	return difference == 0;
}

/* The rows are the Unicode standard's table of well-formed sequences: the range of the first byte,
 * the number of bytes that follow it, and the range of the second byte, which rules out overlong
 * sequences, surrogates and values over U+10FFFF. */
size_t span_utf8_length(struct span text)
{
	static const struct {
		uint8_t first_from, first_to, followers, second_from, second_to;
	} rows[] = {
		{0x00, 0x7f, 0, 0x00, 0x00},
		{0xc2, 0xdf, 1, 0x80, 0xbf},
		{0xe0, 0xe0, 2, 0xa0, 0xbf},
		{0xe1, 0xec, 2, 0x80, 0xbf},
		{0xed, 0xed, 2, 0x80, 0x9f},
		{0xee, 0xef, 2, 0x80, 0xbf},
		{0xf0, 0xf0, 3, 0x90, 0xbf},
		{0xf1, 0xf3, 3, 0x80, 0xbf},
		{0xf4, 0xf4, 3, 0x80, 0x8f},
	};
	size_t row = 0;
	while (row < sizeof(rows) / sizeof(rows[0]) && text.len > 0 &&
		text.data[0] > rows[row].first_to)
		row++;
	if (text.len == 0 || row == sizeof(rows) / sizeof(rows[0]) ||
		text.data[0] < rows[row].first_from || text.len <= rows[row].followers)
		return 0;
	if (rows[row].followers > 0 &&
		(text.data[1] < rows[row].second_from || text.data[1] > rows[row].second_to))
		return 0;
	for (size_t i = 2; i <= rows[row].followers; i++)
		if ((text.data[i] & 0xc0) != 0x80)
			return 0;
	return 1 + (size_t)rows[row].followers;
}

bool span_is_utf8(struct span text)
{
	for (size_t at = 0; at < text.len;) {
		const size_t len = span_utf8_length(span_slice(text, at, 4));
		if (len == 0)
			return false;
		at += len;
	}
	return true;
}

static uint8_t lowered(uint8_t byte)
{
	return byte >= 'A' && byte <= 'Z' ? (uint8_t)(byte + ('a' - 'A')) : byte;
}

static bool is_blank(uint8_t byte)
{
	return byte == ' ' || byte == '\t';
}
