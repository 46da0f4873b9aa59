#include "weights/codec/block_context.h"

enum { STRETCH = 64, LENGTHS = 5 };

static void count_words(struct ulp_format format, size_t width, struct span base, struct span next,
	struct block_code_stats *stats);

void block_code_count(
	enum dtype dtype, struct span base, struct span next, struct block_code_stats *stats)
{
	const struct ulp_format format = ulp_format_of(dtype);
	const size_t width = block_word_bytes(dtype);
	ASSERT(base.len == next.len);
	ASSERT(next.len % width == 0);
	stats->elements += next.len / width;
	for (size_t from = 0; from < next.len; from += STRETCH * width) {
		const struct span old = span_slice(base, from, STRETCH * width);
		const struct span new = span_slice(next, from, STRETCH * width);
		if (memcmp(old.data, new.data, new.len) != 0)
			count_words(format, width, old, new, stats);
	}
}

static void count_words(struct ulp_format format, size_t width, struct span base, struct span next,
	struct block_code_stats *stats)
{
	for (size_t i = 0; i < next.len; i += width) {
		if (memcmp(base.data + i, next.data + i, width) == 0)
			continue;
		stats->changed++;
		if (format.width == 0)
			continue;
		const uint16_t old = ulp_word_load(base.data + i, format.width);
		const int step = ulp_word_step(
			old, ulp_word_load(next.data + i, format.width), format.width);
		const int length = step < 0 ? -step : step;
		stats->ulp_steps[length < LENGTHS ? length - 1 : LENGTHS - 1]++;
	}
}
