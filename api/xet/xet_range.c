#include "api/xet/xet_range.h"

#include "base/error.h"

static bool parse_one(struct span text, struct xet_range *out);
static bool parse_number(struct span text, uint64_t *out);

bool xet_range_parse(struct span header, struct xet_range out[XET_RANGES_MAX], size_t *out_count)
{
	static const struct span unit = {(const uint8_t *)"bytes=", 6};
	const struct span text = span_trim(header);
	if (!span_starts(text, unit))
		return false;
	struct span rest = span_slice(text, unit.len, text.len);
	struct span piece;
	*out_count = 0;
	while (span_split(&rest, ',', &piece)) {
		if (*out_count == XET_RANGES_MAX || !parse_one(span_trim(piece), &out[*out_count]))
			return false;
		++*out_count;
	}
	return *out_count > 0;
}

bool xet_range_resolve(
	const struct xet_range *range, uint64_t size, uint64_t *out_from, uint64_t *out_to)
{
	ASSERT(range->is_suffix || range->first <= range->last);
	const uint64_t last = range->last < size ? range->last : size - (size > 0);
	*out_from =
		range->is_suffix ? size - (range->last < size ? range->last : size) : range->first;
	*out_to = range->is_suffix ? size : last + 1;
	return *out_from < size && *out_from < *out_to;
}

static bool parse_one(struct span text, struct xet_range *out)
{
	const ptrdiff_t dash = span_find(text, '-');
	if (dash < 0)
		return false;
	const struct span before = span_slice(text, 0, (size_t)dash);
	const struct span after = span_slice(text, (size_t)dash + 1, text.len);
	*out = (struct xet_range){.last = UINT64_MAX, .is_suffix = before.len == 0};
	if (out->is_suffix)
		return parse_number(after, &out->last);
	if (!parse_number(before, &out->first) ||
		(after.len > 0 && !parse_number(after, &out->last)))
		return false;
	return out->first <= out->last;
}

static bool parse_number(struct span text, uint64_t *out)
{
	uint64_t value = 0;
	for (size_t i = 0; i < text.len; i++) {
		const uint8_t digit = text.data[i];
		if (digit < '0' || digit > '9')
			return false;
		value = value > (UINT64_MAX - 9) / 10 ? UINT64_MAX
						      : value * 10 + (uint64_t)(digit - '0');
	}
	*out = value;
	return text.len > 0;
}
