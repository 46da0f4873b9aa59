#include "storage/run_tables/step_range.h"

#include <stdlib.h>

static int compare(const void *a, const void *b);

size_t step_range_join(struct step_range *ranges, size_t count)
{
	size_t kept = 0;
	if (count > 1)
		qsort(ranges, count, sizeof(*ranges), compare);
	for (size_t i = 0; i < count; i++) {
		struct step_range *const before = kept > 0 ? &ranges[kept - 1] : NULL;
		if (before == NULL ||
			(before->last < UINT64_MAX && ranges[i].first > before->last + 1))
			ranges[kept++] = ranges[i];
		else if (ranges[i].last > before->last)
			before->last = ranges[i].last;
	}
	return kept;
}

size_t step_range_at_or_behind(const struct step_range *ranges, size_t count, uint64_t step)
{
	size_t low = 0;
	size_t high = count;
	while (low < high) {
		const size_t middle = low + (high - low) / 2;
		if (ranges[middle].last < step)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static int compare(const void *a, const void *b)
{
	const struct step_range *const left = a;
	const struct step_range *const right = b;
	return left->first < right->first ? -1 : left->first > right->first;
}
