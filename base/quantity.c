/* Reads in integers alone, so that a quantity is exact or refused: the digits without their point,
 * times the size of the unit, must divide without rest by the scale times the power of ten. */
#include "base/quantity.h"

#include <stdio.h>

#include "base/error.h"

enum { DECIMALS_MAX = 9 };

/* Sizes are in thousandths of a second, and in bytes. */
static const struct unit {
	const char *name;
	enum quantity_kind kind;
	uint64_t size;
} UNITS[] = {
	{"b", QUANTITY_BYTES, 1},
	{"kb", QUANTITY_BYTES, 1000},
	{"mb", QUANTITY_BYTES, 1000 * 1000},
	{"gb", QUANTITY_BYTES, 1000 * 1000 * 1000},
	{"tb", QUANTITY_BYTES, UINT64_C(1000) * 1000 * 1000 * 1000},
	{"pb", QUANTITY_BYTES, UINT64_C(1000) * 1000 * 1000 * 1000 * 1000},
	{"kib", QUANTITY_BYTES, UINT64_C(1) << 10},
	{"mib", QUANTITY_BYTES, UINT64_C(1) << 20},
	{"gib", QUANTITY_BYTES, UINT64_C(1) << 30},
	{"tib", QUANTITY_BYTES, UINT64_C(1) << 40},
	{"pib", QUANTITY_BYTES, UINT64_C(1) << 50},
	{"k", QUANTITY_BYTES, UINT64_C(1) << 10},
	{"m", QUANTITY_BYTES, UINT64_C(1) << 20},
	{"g", QUANTITY_BYTES, UINT64_C(1) << 30},
	{"t", QUANTITY_BYTES, UINT64_C(1) << 40},
	{"p", QUANTITY_BYTES, UINT64_C(1) << 50},
	{"ms", QUANTITY_SECONDS, 1},
	{"s", QUANTITY_SECONDS, 1000},
	{"sec", QUANTITY_SECONDS, 1000},
	{"m", QUANTITY_SECONDS, 60 * 1000},
	{"min", QUANTITY_SECONDS, 60 * 1000},
	{"h", QUANTITY_SECONDS, 3600 * 1000},
	{"d", QUANTITY_SECONDS, UINT64_C(24) * 3600 * 1000},
};

struct number {
	uint64_t digits;  /* without the point */
	uint64_t divisor; /* 10 to the power of the number of decimals */
	struct span rest;
};

static bool read_number(struct span text, struct number *out);
static size_t count_digits(struct span text, size_t from);
static uint64_t size_of_unit(struct span name, enum quantity_kind kind);

bool quantity_parse(struct span text, enum quantity_kind kind, uint64_t scale, uint64_t *out)
{
	struct number number;
	uint64_t small;
	ASSERT(scale >= 1);
	if (!read_number(span_trim(text), &number))
		return false;
	const uint64_t per_scale = kind == QUANTITY_SECONDS ? scale * 1000 : scale;
	const uint64_t unit = number.rest.len == 0 ? per_scale : size_of_unit(number.rest, kind);
	const uint64_t divisor = number.divisor * per_scale;
	if (unit == 0 || __builtin_mul_overflow(number.digits, unit, &small) ||
		small % divisor != 0)
		return false;
	*out = small / divisor;
	return true;
}

void quantity_format(uint64_t bytes, char out[QUANTITY_TEXT_BYTES])
{
	static const char *const names[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
	double value = (double)bytes;
	size_t unit = 0;
	for (; value >= 999.95 && unit + 1 < sizeof(names) / sizeof(names[0]); unit++)
		value /= 1000;
	if (unit == 0)
		snprintf(out, QUANTITY_TEXT_BYTES, "%u B", (unsigned)bytes);
	else
		snprintf(out, QUANTITY_TEXT_BYTES, "%.1f %s", value, names[unit]);
}

static bool read_number(struct span text, struct number *out)
{
	const size_t whole = count_digits(text, 0);
	const bool has_point = whole < text.len && text.data[whole] == '.';
	const size_t decimals = has_point ? count_digits(text, whole + 1) : 0;
	if (whole == 0 || (has_point && decimals == 0) || decimals > DECIMALS_MAX)
		return false;
	if (!span_parse_u64(span_slice(text, 0, whole), &out->digits))
		return false;
	out->divisor = 1;
	for (size_t i = 0; i < decimals; i++) {
		const uint64_t digit = (uint64_t)(text.data[whole + 1 + i] - '0');
		if (__builtin_mul_overflow(out->digits, 10, &out->digits) ||
			__builtin_add_overflow(out->digits, digit, &out->digits))
			return false;
		out->divisor *= 10;
	}
	const size_t end = whole + (has_point ? 1 + decimals : 0);
	out->rest = span_trim(span_slice(text, end, text.len));
	return true;
}

static size_t count_digits(struct span text, size_t from)
{
	size_t at = from;
	while (at < text.len && text.data[at] >= '0' && text.data[at] <= '9')
		at++;
	return at - from;
}

/* Returns 0 when there is no such unit. */
static uint64_t size_of_unit(struct span name, enum quantity_kind kind)
{
	for (size_t i = 0; i < sizeof(UNITS) / sizeof(UNITS[0]); i++)
		if (UNITS[i].kind == kind && span_equal_nocase(name, UNITS[i].name))
			return UNITS[i].size;
	return 0;
}
