/* The Range header: the size from the first 8 bytes, the header from the rest. Whatever comes, a
 * part lies within the object. */
#include "api/objects/byte_range.h"

#include <string.h>

#include "base/error.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	uint64_t size = 0;
	if (len < sizeof(size))
		return 0;
	memcpy(&size, data, sizeof(size));
	const struct byte_range range =
		byte_range_parse(span_of(data + sizeof(size), len - sizeof(size)), size);
	if (range.kind == BYTE_RANGE_WHOLE)
		ASSERT(range.first == 0 && range.length == size);
	if (range.kind == BYTE_RANGE_PART)
		ASSERT(range.length > 0 && range.first < size &&
			range.length <= size - range.first);
	return 0;
}
