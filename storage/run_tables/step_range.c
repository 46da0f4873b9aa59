#include "storage/run_tables/step_range.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/search.h"

static int step_range_compare(const void *a, const void *b);
static bool step_range_ends_before(const void *element, const void *key);

size_t step_range_join(struct step_range *ranges, size_t count)
{
	size_t kept = 0;
	if (count > 1)
		qsort(ranges, count, sizeof(*ranges), step_range_compare);
	for (size_t i = 0; i < count; i++) {
		ASSERT(ranges[i].first <= ranges[i].last);
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
	return search_lower_bound(ranges, count, sizeof(*ranges), step_range_ends_before, &step);
}

static int step_range_compare(const void *a, const void *b)
{
	const struct step_range *const left = a;
	const struct step_range *const right = b;
	return left->first < right->first ? -1 : left->first > right->first;
}

static bool step_range_ends_before(const void *element, const void *key)
{
	return ((const struct step_range *)element)->last < *(const uint64_t *)key;
}
