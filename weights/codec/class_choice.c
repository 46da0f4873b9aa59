#include "weights/codec/class_choice.h"

enum {
	EXPONENTS = 256,
	GROUP = 512, /* elements in a row: such reads are quick */
	GROUPS_MOST = 16,
	COMMON_SHARE = 1024, /* the first class has at least a 1024th of the elements, and */
	COMMON_LEAST = 1024, /* so many: its line in the table must pay */
	RARE_SHARE = 4096    /* elements behind the last class that are not worth another */
};

static size_t count_exponents(
	struct span base, struct ulp_format format, uint32_t counts[EXPONENTS]);

void class_choice(
	struct span base, struct ulp_format format, uint8_t *out_top, uint8_t *out_classes)
{
	uint32_t counts[EXPONENTS] = {0};
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

/* Gives how many words were counted: all, or groups at equal distances. */
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
