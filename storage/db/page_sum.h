/* Checksums of the pages of a database file. SQLite leaves the last bytes of each page unused when
 * a file says so in its header ("reserved bytes"); there stands the page's checksum, which knows
 * the page's number too, so that a page written to the wrong place is noticed. docs/FORMAT.md,
 * "Pages". Pure functions; any thread. Internal to storage. */
#ifndef STORAGE_DB_PAGE_SUM_H
#define STORAGE_DB_PAGE_SUM_H

#include <stdbool.h>
#include <stdint.h>

enum { PAGE_BYTES = 4096, PAGE_SUM_BYTES = 8 };

/* Pages are numbered from 1. */
void page_sum_put(uint8_t page[PAGE_BYTES], uint32_t number);
bool page_sum_matches(const uint8_t page[PAGE_BYTES], uint32_t number);
/* A page that does not match and that one flipped bit explains gets that bit back: true. The page
 * is as it was otherwise. Takes some ms. */
bool page_sum_mend(uint8_t page[PAGE_BYTES], uint32_t number);

#endif
