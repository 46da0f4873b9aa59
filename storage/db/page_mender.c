/* Pages whose numbers share an index push each other out, and each then costs a search again. */
#include "storage/db/page_mender.h"

#include "base/digest/xxh3.h"
#include "base/error.h"

enum page_mending page_mender_mend(
	struct page_mender *mender, uint8_t page[PAGE_BYTES], uint32_t number)
{
	ASSERT(number >= 1);
	uint64_t digest = xxh3_64_seeded(span_of(page, PAGE_BYTES), number);
	_Atomic uint64_t *known = &mender->unmendable[number % PAGE_MENDER_PAGES];
	if (atomic_load(known) == digest)
		return PAGE_KNOWN_AS_UNMENDABLE;
	if (page_sum_mend(page, number))
		return PAGE_MENDED;
	atomic_store(known, digest);
	return PAGE_UNMENDABLE;
}
