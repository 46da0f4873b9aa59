/* Mends pages (page_sum.h), and remembers pages that no flipped bit explains: to find that out
 * takes some ms, and a damaged page is read again and again. It remembers a digest of the bytes, so
 * that other bytes are looked at again. Any thread, without a lock. Internal to storage. */
#ifndef STORAGE_DB_PAGE_MENDER_H
#define STORAGE_DB_PAGE_MENDER_H

#include <stdatomic.h>

#include "storage/db/page_sum.h"

enum { PAGE_MENDER_PAGES = 256 };

struct page_mender { /* a zeroed one remembers nothing */
	/* index: the page's number modulo their count */
	_Atomic uint64_t unmendable[PAGE_MENDER_PAGES];
};

enum page_mending {
	PAGE_MENDED,
	PAGE_UNMENDABLE,
	PAGE_KNOWN_AS_UNMENDABLE /* not tried again */
};

/* For a page that does not match its checksum. The page changes only if it is mended. */
enum page_mending page_mender_mend(
	struct page_mender *mender, uint8_t page[PAGE_BYTES], uint32_t number);

#endif
