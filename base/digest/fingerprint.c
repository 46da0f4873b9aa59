#include "base/digest/fingerprint.h"

#include <stdlib.h>
#include <string.h>

#include "base/encode.h"
#include "base/memory.h"

static const char PREFIX[] = "sha256:";
enum { DER_MAX_BYTES = 64 * 1024 };

static bool find_body(struct span pem, struct buffer *out);

bool fingerprint_of_pem(struct span pem, struct fingerprint *out)
{
	struct buffer text;
	size_t len = 0;
	uint8_t *const der = memory_new(DER_MAX_BYTES);
	buffer_init(&text, 2 * DER_MAX_BYTES);
	const bool found = find_body(pem, &text) &&
		decode_base64(buffer_span(&text), der, DER_MAX_BYTES, &len) && len > 0;
	if (found)
		sha256(span_of(der, len), out->bytes);
	buffer_release(&text);
	free(der);
	return found;
}

void fingerprint_format(const struct fingerprint *fingerprint, char out[FINGERPRINT_TEXT_BYTES])
{
	memcpy(out, PREFIX, sizeof(PREFIX) - 1);
	encode_hex(span_of(fingerprint->bytes, SHA256_BYTES), out + sizeof(PREFIX) - 1);
}

bool fingerprint_parse(struct span text, struct fingerprint *out)
{
	char digits[2 * SHA256_BYTES];
	size_t count = 0;
	struct span rest = span_trim(text);
	if (rest.len >= sizeof(PREFIX) - 1 &&
		span_equal_nocase(span_slice(rest, 0, sizeof(PREFIX) - 1), PREFIX))
		rest = span_slice(rest, sizeof(PREFIX) - 1, rest.len);
	for (size_t i = 0; i < rest.len; i++) {
		if (rest.data[i] == ':')
			continue;
		if (count == sizeof(digits))
			return false;
		digits[count++] = (char)rest.data[i];
	}
	return decode_hex(span_of(digits, count), out->bytes, SHA256_BYTES);
}

bool fingerprint_equal(const struct fingerprint *a, const struct fingerprint *b)
{
	return memcmp(a->bytes, b->bytes, SHA256_BYTES) == 0;
}

/* Adds the base64 text of the first certificate, without line ends. */
static bool find_body(struct span pem, struct buffer *out)
{
	static const char begin[] = "-----BEGIN CERTIFICATE-----";
	static const char end[] = "-----END CERTIFICATE-----";
	const uint8_t *const first =
		pem.len == 0 ? NULL : memmem(pem.data, pem.len, begin, sizeof(begin) - 1);
	if (first == NULL)
		return false;
	const uint8_t *const from = first + sizeof(begin) - 1;
	const uint8_t *const to =
		memmem(from, pem.len - (size_t)(from - pem.data), end, sizeof(end) - 1);
	for (const uint8_t *at = from; to != NULL && at < to; at++)
		if (*at != '\n' && *at != '\r' && *at != ' ')
			buffer_add_byte(out, *at);
	return to != NULL && !buffer_failed(out);
}
