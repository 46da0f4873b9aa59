/* Binary search in sorted arrays where bsearch() is not enough: finds where a key belongs, also
 * when the key is absent. Inline, so that the comparison costs no call. Any thread. */
#ifndef BASE_SEARCH_H
#define BASE_SEARCH_H

#include <stdbool.h>
#include <stddef.h>

/* Whether the element belongs before the key. */
typedef bool search_is_before(const void *element, const void *key);

/* The lower bound of the key: the index of the first element that does not belong before it, and
 * `count` when all do. The elements that do must come first in `list`, which may be NULL when
 * `count` is 0. */
static inline size_t search_lower_bound(const void *list, size_t count, size_t element_bytes,
	search_is_before *is_before, const void *key)
{
	size_t low = 0;
	size_t high = count;
	while (low < high) {
		const size_t middle = low + (high - low) / 2;
		if (is_before((const char *)list + middle * element_bytes, key))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

#endif
