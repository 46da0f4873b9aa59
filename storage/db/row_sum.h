/* Checksums of catalog rows: SQLite does not notice a flipped bit, so rows that refer to bytes
 * carry one. docs/FORMAT.md, "Catalog". Begin with 0 and add the fields in their documented order.
 * Any thread. Internal to storage. */
#ifndef STORAGE_DB_ROW_SUM_H
#define STORAGE_DB_ROW_SUM_H

#include "base/span.h"

uint64_t row_sum_bytes(uint64_t sum, struct span bytes);
uint64_t row_sum_number(uint64_t sum, int64_t value);

#endif
