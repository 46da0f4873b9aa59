/* Range headers of Xet clients: the size from the first 8 bytes, the header from the rest. What is
 * resolved is not empty and lies within. */
#include "api/xet/xet_range.h"

#include <string.h>

#include "base/error.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	uint64_t size = 0;
	if (len < sizeof(size))
		return 0;
	memcpy(&size, data, sizeof(size));
	struct xet_range ranges[XET_RANGES_MAX];
	size_t count;
	if (!xet_range_parse(span_of(data + sizeof(size), len - sizeof(size)), ranges, &count))
		return 0;
	ASSERT(count >= 1 && count <= XET_RANGES_MAX);
	for (size_t i = 0; i < count; i++) {
		uint64_t from;
		uint64_t to;
		if (xet_range_resolve(&ranges[i], size, &from, &to))
			ASSERT(from < to && to <= size);
	}
	return 0;
}
