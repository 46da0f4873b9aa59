/* Checksums of the pages of a database file. SQLite leaves the last bytes of each page unused when
 * the header of the file says so ("reserved bytes"), and the page's checksum is stored there. It
 * covers the page's number too, so that a page written to the wrong place is noticed.
 * docs/FORMAT.md, "Pages". Pure functions; any thread. Internal to storage. */
#ifndef STORAGE_DB_PAGE_SUM_H
#define STORAGE_DB_PAGE_SUM_H

#include <stdbool.h>
#include <stdint.h>

enum { PAGE_BYTES = 4096, PAGE_SUM_BYTES = 8 };

/* Pages are numbered from 1. */
void page_sum_put(uint8_t page[PAGE_BYTES], uint32_t number);
bool page_sum_matches(const uint8_t page[PAGE_BYTES], uint32_t number);
/* Corrects the bit of a page that does not match: true when one flipped bit explains it. Otherwise
 * the page stays as it was. Takes some ms. */
bool page_sum_mend(uint8_t page[PAGE_BYTES], uint32_t number);

#endif
