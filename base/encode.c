/* Encoders write from tables of digits. The decoders of base64 accept exactly one text for each
 * value; hex digits are accepted in upper and lower case. Percent-encoding adds runs of plain bytes
 * whole, because names consist mostly of those. */
#include "base/encode.h"

#include <string.h>

static const char lower_digits[] = "0123456789abcdef";
static const char upper_digits[] = "0123456789ABCDEF";
static const char base64_digits[] =
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static int hex_value(uint8_t digit);
static size_t decode_base64_group(const uint8_t digits[4], bool last, uint8_t out[3]);
static int base64_value(uint8_t digit);
static uint8_t swap_digit(uint8_t digit, const char from[2], const char to[2]);
static bool is_plain(uint8_t byte, bool keep_slash);
static void add_escaped(struct buffer *out, uint8_t byte);

void encode_hex(struct span bytes, char *out)
{
	for (size_t i = 0; i < bytes.len; i++) {
		out[2 * i] = lower_digits[bytes.data[i] >> 4];
		out[2 * i + 1] = lower_digits[bytes.data[i] & 15];
	}
	out[2 * bytes.len] = '\0';
}

bool decode_hex(struct span text, uint8_t *out, size_t out_len)
{
	if (text.len % 2 != 0 || text.len / 2 != out_len)
		return false;
	for (size_t i = 0; i < out_len; i++) {
		const int high = hex_value(text.data[2 * i]);
		const int low = hex_value(text.data[2 * i + 1]);
		if (high < 0 || low < 0)
			return false;
		out[i] = (uint8_t)(high << 4 | low);
	}
	return true;
}

void encode_base64(struct span bytes, struct buffer *out)
{
	for (size_t at = 0; at < bytes.len; at += 3) {
		const struct span group = span_slice(bytes, at, 3);
		const uint32_t bits = (uint32_t)group.data[0] << 16 |
			(group.len > 1 ? (uint32_t)group.data[1] << 8 : 0) |
			(group.len > 2 ? group.data[2] : 0);
		const char digits[4] = {
			base64_digits[bits >> 18],
			base64_digits[bits >> 12 & 63],
			group.len > 1 ? base64_digits[bits >> 6 & 63] : '=',
			group.len > 2 ? base64_digits[bits & 63] : '=',
		};
		buffer_add(out, digits, sizeof(digits));
	}
}

bool decode_base64(struct span text, uint8_t *out, size_t capacity, size_t *out_len)
{
	size_t len = 0;
	if (text.len % 4 != 0)
		return false;
	for (size_t at = 0; at < text.len; at += 4) {
		uint8_t bytes[3];
		const size_t count = decode_base64_group(text.data + at, at + 4 == text.len, bytes);
		if (count == 0 || count > capacity - len)
			return false;
		memcpy(out + len, bytes, count);
		len += count;
	}
	*out_len = len;
	return true;
}

void encode_base64_url(struct span bytes, struct buffer *out)
{
	const size_t before = out->len;
	encode_base64(bytes, out);
	if (buffer_failed(out))
		return;
	while (out->len > before && out->data[out->len - 1] == '=')
		out->data[--out->len] = '\0';
	for (size_t i = before; i < out->len; i++)
		out->data[i] = swap_digit(out->data[i], "+/", "-_");
}

bool decode_base64_url(struct span text, uint8_t *out, size_t capacity, size_t *out_len)
{
	size_t len = 0;
	for (size_t at = 0; at < text.len; at += 4) {
		uint8_t digits[4] = {'=', '=', '=', '='};
		uint8_t bytes[3];
		const struct span group = span_slice(text, at, 4);
		for (size_t i = 0; i < group.len; i++) {
			if (group.data[i] == '+' || group.data[i] == '/' || group.data[i] == '=')
				return false;
			digits[i] = swap_digit(group.data[i], "-_", "+/");
		}
		const size_t count = group.len > 1 ? decode_base64_group(digits, true, bytes) : 0;
		if (count == 0 || count > capacity - len)
			return false;
		memcpy(out + len, bytes, count);
		len += count;
	}
	*out_len = len;
	return true;
}

void encode_percent(struct span bytes, bool keep_slash, struct buffer *out)
{
	size_t plain_from = 0;
	for (size_t i = 0; i < bytes.len; i++) {
		const uint8_t byte = bytes.data[i];
		if (is_plain(byte, keep_slash))
			continue;
		buffer_add(out, bytes.data + plain_from, i - plain_from);
		add_escaped(out, byte);
		plain_from = i + 1;
	}
	if (plain_from < bytes.len)
		buffer_add(out, bytes.data + plain_from, bytes.len - plain_from);
}

bool recode_percent(struct span text, bool plus_is_space, bool keep_slash, struct buffer *out)
{
	size_t plain_from = 0;
	for (size_t i = 0; i < text.len; i++) {
		const size_t at = i;
		uint8_t byte = text.data[i];
		if (is_plain(byte, keep_slash))
			continue;
		if (byte == '%') {
			if (!decode_hex(span_slice(text, i + 1, 2), &byte, 1))
				return false;
			i += 2;
		} else if (byte == '+' && plus_is_space) {
			byte = ' ';
		}
		if (byte == 0)
			return false;
		buffer_add(out, text.data + plain_from, at - plain_from);
		if (is_plain(byte, keep_slash))
			buffer_add_byte(out, byte);
		else
			add_escaped(out, byte);
		plain_from = i + 1;
	}
	if (plain_from < text.len)
		buffer_add(out, text.data + plain_from, text.len - plain_from);
	return true;
}

bool percent_is_valid(struct span text)
{
	struct span rest = text;
	ptrdiff_t at;
	uint8_t byte = 0;
	if (span_find(text, 0) >= 0)
		return false;
	while ((at = span_find(rest, '%')) >= 0) {
		if (!decode_hex(span_slice(rest, (size_t)at + 1, 2), &byte, 1) || byte == 0)
			return false;
		rest = span_slice(rest, (size_t)at + 3, rest.len);
	}
	return true;
}

bool decode_percent(struct span text, bool plus_is_space, struct buffer *out)
{
	size_t plain_from = 0;
	for (size_t i = 0; i < text.len; i++) {
		uint8_t byte = text.data[i];
		const size_t at = i;
		if (byte != '%' && (byte != '+' || !plus_is_space))
			continue;
		if (byte == '%' && !decode_hex(span_slice(text, i + 1, 2), &byte, 1))
			return false;
		if (byte == '+' && text.data[at] == '+')
			byte = ' ';
		buffer_add(out, text.data + plain_from, at - plain_from);
		buffer_add_byte(out, byte);
		i += text.data[at] == '%' ? 2 : 0;
		plain_from = i + 1;
	}
	if (plain_from < text.len)
		buffer_add(out, text.data + plain_from, text.len - plain_from);
	return true;
}

static int hex_value(uint8_t digit)
{
	if (digit >= '0' && digit <= '9')
		return digit - '0';
	const uint8_t lower = digit | 0x20;
	return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/* Decodes a group of four digits to up to three bytes. The unused low bits of a padded group must
 * be zero, so that each value has one text. Returns the number of bytes, or 0 when the group is
 * malformed. */
static size_t decode_base64_group(const uint8_t digits[4], bool last, uint8_t out[3])
{
	size_t count = 3;
	if (last && digits[3] == '=')
		count = digits[2] == '=' ? 1 : 2;
	uint32_t bits = 0;
	for (size_t i = 0; i < 4; i++) {
		const int value = i <= count ? base64_value(digits[i]) : 0;
		if (value < 0)
			return 0;
		bits = bits << 6 | (uint32_t)value;
	}
	if ((bits & ((1U << (24 - 8 * count)) - 1)) != 0)
		return 0;
	for (size_t i = 0; i < 3; i++)
		out[i] = (uint8_t)(bits >> (16 - 8 * i));
	return count;
}

static int base64_value(uint8_t digit)
{
	const char *const at = digit != 0 ? strchr(base64_digits, digit) : NULL;
	return at != NULL ? (int)(at - base64_digits) : -1;
}

/* Swaps the two digits in which the URL form differs. */
static uint8_t swap_digit(uint8_t digit, const char from[2], const char to[2])
{
	return digit == (uint8_t)from[0]    ? (uint8_t)to[0]
		: digit == (uint8_t)from[1] ? (uint8_t)to[1]
					    : digit;
}

static bool is_plain(uint8_t byte, bool keep_slash)
{
	const uint8_t lower = byte | 0x20;
	return (lower >= 'a' && lower <= 'z') || (byte >= '0' && byte <= '9') || byte == '-' ||
		byte == '.' || byte == '_' || byte == '~' || (keep_slash && byte == '/');
}

static void add_escaped(struct buffer *out, uint8_t byte)
{
	buffer_add(out, (const char[]){'%', upper_digits[byte >> 4], upper_digits[byte & 15]}, 3);
}
