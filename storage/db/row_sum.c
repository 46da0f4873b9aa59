/* A chain: next = XXH3-64(previous, length, XXH3-64(bytes)), each a little-endian u64. The lengths
 * keep neighbouring fields apart. */
#include "storage/db/row_sum.h"

#include <endian.h>

#include "base/digest/xxh3.h"

uint64_t row_sum_bytes(uint64_t sum, struct span bytes)
{
	const uint64_t words[3] = {htole64(sum), htole64(bytes.len), htole64(xxh3_64(bytes))};
	return xxh3_64(span_of(words, sizeof(words)));
}

uint64_t row_sum_number(uint64_t sum, int64_t value)
{
	const uint64_t word = htole64((uint64_t)value);
	return row_sum_bytes(sum, span_of(&word, sizeof(word)));
}
