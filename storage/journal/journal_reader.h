/* Reads a log of the journal from its front, record by record, each proven by its digest. One
 * thread. Internal to storage. */
#ifndef STORAGE_JOURNAL_JOURNAL_READER_H
#define STORAGE_JOURNAL_JOURNAL_READER_H

#include "storage/journal/journal_format.h"

struct journal_reader;

/* NULL with the error set, which names the file. */
struct journal_reader *journal_reader_open(
	const char *path, struct journal_header *out_header, struct error *err);
/* Returns 1 with the next record and its rows, which are valid until the next call; 0 at the end of
 * the file; or -1 with corrupt where the bytes are no record that follows on the one before, as at
 * the end of a log that was cut off. */
int journal_reader_next(struct journal_reader *reader, struct journal_record *out,
	struct span *out_rows, struct error *err);
/* Where the next record begins. */
uint64_t journal_reader_offset(const struct journal_reader *reader);
void journal_reader_close(struct journal_reader *reader); /* NULL is fine */

#endif
