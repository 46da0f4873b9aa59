#include "base/digest/bech32.h"

#include <string.h>

enum { CHECKSUM_LETTERS = 6, BYTES_MAX = 64, LETTERS_MAX = BYTES_MAX * 8 / 5 + 1 };

static const char letters[] = "qpzry9x8gf2tvdw0s3jn54khce6mua7l";

static uint32_t add(uint32_t sum, uint8_t value);
static uint32_t sum_prefix(const char *prefix);
static void split(struct span bytes, uint8_t *out, size_t *out_count);
static bool read_letters(struct span text, uint8_t *out);
static bool join(const uint8_t *values, size_t count, uint8_t *out, size_t len);

void bech32_encode(const char *prefix, struct span bytes, struct buffer *out)
{
	uint8_t values[LETTERS_MAX];
	size_t count = 0;
	ASSERT(bytes.len <= BYTES_MAX);
	split(bytes, values, &count);
	uint32_t sum = sum_prefix(prefix);
	buffer_add_text(out, prefix);
	buffer_add_byte(out, '1');
	for (size_t i = 0; i < count; i++) {
		sum = add(sum, values[i]);
		buffer_add_byte(out, (uint8_t)letters[values[i]]);
	}
	for (int i = 0; i < CHECKSUM_LETTERS; i++)
		sum = add(sum, 0);
	sum ^= 1;
	for (int i = CHECKSUM_LETTERS; i-- > 0;)
		buffer_add_byte(out, (uint8_t)letters[(sum >> (5 * i)) & 31]);
}

bool bech32_decode(struct span text, const char *prefix, uint8_t *out, size_t len)
{
	uint8_t values[LETTERS_MAX + CHECKSUM_LETTERS];
	const size_t count = (len * 8 + 4) / 5;
	const size_t front = strlen(prefix);
	uint32_t sum = sum_prefix(prefix);
	ASSERT(len <= BYTES_MAX);
	if (text.len != front + 1 + count + CHECKSUM_LETTERS ||
		!span_equal_nocase(span_slice(text, 0, front), prefix) || text.data[front] != '1' ||
		!read_letters(text, values))
		return false;
	for (size_t i = 0; i < count + CHECKSUM_LETTERS; i++)
		sum = add(sum, values[i]);
	return sum == 1 && join(values, count, out, len);
}

/* The checksum of BIP 173, one value further. */
static uint32_t add(uint32_t sum, uint8_t value)
{
	static const uint32_t steps[] = {
		0x3b6a57b2, 0x26508e6d, 0x1ea119fa, 0x3d4233dd, 0x2a1462b3};
	const uint32_t top = sum >> 25;
	sum = (sum & 0x1ffffff) << 5 ^ value;
	for (int i = 0; i < 5; i++)
		sum ^= (top >> i & 1) != 0 ? steps[i] : 0;
	return sum;
}

static uint32_t sum_prefix(const char *prefix)
{
	uint32_t sum = 1;
	for (const char *letter = prefix; *letter != '\0'; letter++)
		sum = add(sum, (uint8_t)*letter >> 5);
	sum = add(sum, 0);
	for (const char *letter = prefix; *letter != '\0'; letter++)
		sum = add(sum, (uint8_t)*letter & 31);
	return sum;
}

static void split(struct span bytes, uint8_t *out, size_t *out_count)
{
	uint32_t held = 0;
	int bits = 0;
	for (size_t i = 0; i < bytes.len; i++) {
		held = held << 8 | bytes.data[i];
		for (bits += 8; bits >= 5; bits -= 5)
			out[(*out_count)++] = held >> (bits - 5) & 31;
	}
	if (bits > 0)
		out[(*out_count)++] = held << (5 - bits) & 31;
}

/* Of all behind the last '1' that are of one case. */
static bool read_letters(struct span text, uint8_t *out)
{
	bool has_lower = false;
	bool has_upper = false;
	size_t from = 0;
	for (size_t i = 0; i < text.len; i++) {
		has_lower |= text.data[i] >= 'a' && text.data[i] <= 'z';
		has_upper |= text.data[i] >= 'A' && text.data[i] <= 'Z';
		from = text.data[i] == '1' ? i + 1 : from;
	}
	for (size_t i = from; i < text.len; i++) {
		const int small =
			has_upper && text.data[i] >= 'A' ? text.data[i] | 0x20 : text.data[i];
		const char *found = small != 0 ? strchr(letters, small) : NULL;
		if (found == NULL)
			return false;
		out[i - from] = (uint8_t)(found - letters);
	}
	return !(has_lower && has_upper);
}

static bool join(const uint8_t *values, size_t count, uint8_t *out, size_t len)
{
	uint32_t held = 0;
	int bits = 0;
	size_t done = 0;
	for (size_t i = 0; i < count; i++) {
		held = held << 5 | values[i];
		bits += 5;
		if (bits >= 8 && done < len) {
			bits -= 8;
			out[done++] = (uint8_t)(held >> bits);
		}
	}
	return done == len && (held & ((1U << bits) - 1)) == 0;
}
