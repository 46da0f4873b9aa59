#include "weights/codec/class_choice.h"

#include "base/error.h"

enum {
	EXPONENTS = 256,
	GROUP = 512, /* elements that are counted in a row, which is quick to read */
	GROUPS_MOST = 16,
	/* the first class has at least a 1024th of the elements and at least 1024, so that its
	 * place in the table pays */
	COMMON_SHARE = 1024,
	COMMON_LEAST = 1024,
	RARE_SHARE = 4096 /* a 4096th of the elements is not worth another class */
};

static size_t count_exponents(
	struct span base, struct ulp_format format, uint32_t counts[EXPONENTS]);

void class_choice(
	struct span base, struct ulp_format format, uint8_t *out_top, uint8_t *out_classes)
{
	uint32_t counts[EXPONENTS] = {0};
	ASSERT(format.width != 0 && base.len % format.width == 0);
	const size_t words = base.len / format.width;
	const size_t counted = count_exponents(base, format, counts);
	const size_t common =
		words / COMMON_SHARE < COMMON_LEAST ? COMMON_LEAST : words / COMMON_SHARE;
	size_t above = 0;
	unsigned top = EXPONENTS;
	while (top > 0 && above * words < common * counted)
		above += counts[--top];
	unsigned classes = 1;
	for (unsigned exponent = top; classes < ULP_CLASSES_MAX && exponent > 0 &&
		(counted - above) * RARE_SHARE > counted;
		classes++)
		above += counts[--exponent];
	*out_top = (uint8_t)top;
	*out_classes = (uint8_t)classes;
}

/* Counts all words, or groups of words at equal distances. Returns how many it counted. */
static size_t count_exponents(
	struct span base, struct ulp_format format, uint32_t counts[EXPONENTS])
{
	const size_t words = base.len / format.width;
	const size_t stride = words / (GROUP * GROUPS_MOST) + 1;
	size_t counted = 0;
	for (size_t from = 0; from < words; from += stride * GROUP) {
		const size_t to = words - from < GROUP ? words : from + GROUP;
		for (size_t i = from; i < to; i++)
			counts[(unsigned)(ulp_word_load(
						  base.data + i * format.width, format.width) >>
				       format.shift) &
				format.mask]++;
		counted += to - from;
	}
	return counted;
}
