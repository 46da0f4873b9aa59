/* A sorted list: additions go to its end, and one sort serves many of them. */
#include "storage/reach/number_set.h"

#include <stdlib.h>

#include "base/memory.h"

static int number_set_compare(const void *a, const void *b);

void number_set_add(struct number_set *set, int64_t number)
{
	set->numbers =
		memory_make_room(set->numbers, set->count, &set->capacity, sizeof(*set->numbers));
	set->numbers[set->count++] = number;
}

void number_set_settle(struct number_set *set)
{
	size_t kept = 0;
	if (set->count == 0)
		return;
	qsort(set->numbers, set->count, sizeof(*set->numbers), number_set_compare);
	for (size_t i = 1; i < set->count; i++)
		if (set->numbers[i] != set->numbers[kept])
			set->numbers[++kept] = set->numbers[i];
	set->count = kept + 1;
}

bool number_set_has(const struct number_set *set, int64_t number)
{
	return set->count > 0 &&
		bsearch(&number, set->numbers, set->count, sizeof(number), number_set_compare) !=
		NULL;
}

void number_set_release(struct number_set *set)
{
	free(set->numbers);
	*set = (struct number_set){0};
}

static int number_set_compare(const void *a, const void *b)
{
	const int64_t left = *(const int64_t *)a;
	const int64_t right = *(const int64_t *)b;
	return (left > right) - (left < right);
}
