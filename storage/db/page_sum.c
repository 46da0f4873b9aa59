/* The checksum is XXH3-64 of all bytes before it, seeded with the page's number, little-endian. To
 * mend a page, each bit is flipped in turn until the checksum fits. */
#include "storage/db/page_sum.h"

#include "base/digest/xxh3.h"
#include "base/error.h"
#include "base/little_endian.h"

enum { SUMMED_BYTES = PAGE_BYTES - PAGE_SUM_BYTES };

static uint64_t sum_of(const uint8_t page[PAGE_BYTES], uint32_t number);
static bool mend_sum(uint8_t page[PAGE_BYTES], uint32_t number);

void page_sum_put(uint8_t page[PAGE_BYTES], uint32_t number)
{
	ASSERT(number >= 1);
	little_endian_put(page + SUMMED_BYTES, sum_of(page, number), PAGE_SUM_BYTES);
}

bool page_sum_matches(const uint8_t page[PAGE_BYTES], uint32_t number)
{
	return little_endian_get(page + SUMMED_BYTES, PAGE_SUM_BYTES) == sum_of(page, number);
}

bool page_sum_mend(uint8_t page[PAGE_BYTES], uint32_t number)
{
	ASSERT(number >= 1);
	if (mend_sum(page, number))
		return true;
	for (unsigned bit = 0; bit < SUMMED_BYTES * 8; bit++) {
		page[bit / 8] ^= (uint8_t)(1u << (bit % 8));
		if (page_sum_matches(page, number))
			return true;
		page[bit / 8] ^= (uint8_t)(1u << (bit % 8));
	}
	return false;
}

static uint64_t sum_of(const uint8_t page[PAGE_BYTES], uint32_t number)
{
	return xxh3_64_seeded(span_of(page, SUMMED_BYTES), number);
}

/* If the flipped bit is in the checksum, the page is right and both checksums differ in one bit. */
static bool mend_sum(uint8_t page[PAGE_BYTES], uint32_t number)
{
	uint64_t differs =
		little_endian_get(page + SUMMED_BYTES, PAGE_SUM_BYTES) ^ sum_of(page, number);
	if ((differs & (differs - 1)) != 0)
		return false;
	page_sum_put(page, number);
	return true;
}
