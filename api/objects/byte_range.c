/* Numbers saturate and never overflow: "bytes=0-99999999999999999999" gives everything from 0, as
 * S3 clients expect. */
#include "api/objects/byte_range.h"

#include "base/error.h"

static bool parse_saturating(struct span text, uint64_t *out);
static struct byte_range suffix_range(uint64_t count, uint64_t size);
static struct byte_range first_last_range(uint64_t first, uint64_t last, uint64_t size);

struct byte_range byte_range_parse(struct span header, uint64_t size)
{
	const struct byte_range whole = {.kind = BYTE_RANGE_WHOLE, .first = 0, .length = size};
	const struct span text = span_trim(header);
	if (text.len < 6 || !span_equal_nocase(span_slice(text, 0, 6), "bytes="))
		return whole;

	const struct span set = span_slice(text, 6, text.len - 6);
	const ptrdiff_t dash = span_find(set, '-');
	if (dash < 0)
		return whole;
	const struct span before = span_slice(set, 0, (size_t)dash);
	const struct span after = span_slice(set, (size_t)dash + 1, set.len - (size_t)dash - 1);
	uint64_t first = 0;
	uint64_t last = UINT64_MAX;
	if (before.len == 0) {
		if (!parse_saturating(after, &last))
			return whole;
		const struct byte_range range = suffix_range(last, size);
		return range.kind == BYTE_RANGE_WHOLE ? whole : range;
	}
	if (!parse_saturating(before, &first) ||
		(after.len > 0 && !parse_saturating(after, &last)) || last < first)
		return whole;
	return first_last_range(first, last, size);
}

static bool parse_saturating(struct span text, uint64_t *out)
{
	uint64_t value = 0;
	for (size_t i = 0; i < text.len; i++) {
		const uint8_t c = text.data[i];
		if (c < '0' || c > '9')
			return false;
		const uint64_t digit = c - (uint64_t)'0';
		value = value > (UINT64_MAX - digit) / 10 ? UINT64_MAX : value * 10 + digit;
	}
	*out = value;
	return text.len > 0;
}

/* The last `count` bytes. An empty object is served whole, because no Content-Range can name zero
 * bytes. */
static struct byte_range suffix_range(uint64_t count, uint64_t size)
{
	if (count == 0)
		return (struct byte_range){.kind = BYTE_RANGE_UNSATISFIABLE};
	if (size == 0)
		return (struct byte_range){.kind = BYTE_RANGE_WHOLE};
	const uint64_t length = count < size ? count : size;
	return (struct byte_range){
		.kind = BYTE_RANGE_PART, .first = size - length, .length = length};
}

static struct byte_range first_last_range(uint64_t first, uint64_t last, uint64_t size)
{
	ASSERT(first <= last);
	if (first >= size)
		return (struct byte_range){.kind = BYTE_RANGE_UNSATISFIABLE};
	const uint64_t end = last < size ? last + 1 : size;
	return (struct byte_range){.kind = BYTE_RANGE_PART, .first = first, .length = end - first};
}
