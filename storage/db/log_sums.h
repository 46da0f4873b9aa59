/* Checksums, in memory, of the pages in a write-ahead log, from when this process wrote them or
 * SQLite proved them at recovery. They are needed because SQLite reads a log's pages again and
 * again, and copies them into the database file, without looking at their checksums once more. One
 * writer at a time, with readers beside it and without a lock: nobody reads a frame of the log that
 * is being written. Internal to storage. */
#ifndef STORAGE_DB_LOG_SUMS_H
#define STORAGE_DB_LOG_SUMS_H

#include <stdbool.h>
#include <stdint.h>

#include "storage/db/page_sum.h"

struct log_sums;

struct log_sums *log_sums_new(void);
void log_sums_free(struct log_sums *sums); /* NULL is fine */
/* Frames are numbered from 0. */
void log_sums_note(struct log_sums *sums, uint64_t frame, const uint8_t page[PAGE_BYTES]);
void log_sums_forget(struct log_sums *sums, uint64_t frame);
/* True also for frames that are not known. */
bool log_sums_match(const struct log_sums *sums, uint64_t frame, const uint8_t page[PAGE_BYTES]);

#endif
