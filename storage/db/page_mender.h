/* Mends pages (page_sum.h), and remembers those that no flipped bit explains: to find that out
 * takes some ms, and a damaged page is read again and again. What is remembered is a digest of the
 * bytes: when they are others, they are looked at anew. Any thread, without a lock. Internal to
 * storage. */
#ifndef STORAGE_DB_PAGE_MENDER_H
#define STORAGE_DB_PAGE_MENDER_H

#include <stdatomic.h>

#include "storage/db/page_sum.h"

enum { PAGE_MENDER_PAGES = 256 };

struct page_mender { /* a zeroed one remembers nothing */
	/* at the page's number, modulo their count */
	_Atomic uint64_t unmendable[PAGE_MENDER_PAGES];
};

enum page_mending {
	PAGE_MENDED,
	PAGE_UNMENDABLE,
	PAGE_KNOWN_AS_UNMENDABLE /* not looked at again */
};

/* For a page that does not match its checksum. Unless it is mended, it stays as it is. */
enum page_mending page_mender_mend(
	struct page_mender *mender, uint8_t page[PAGE_BYTES], uint32_t number);

#endif
