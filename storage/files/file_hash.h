/* The Xet file hashes of versions that were committed without: multipart uploads, what the server
 * made. Where a version has segments its hash follows from the indexes of their packs, no content
 * is read; a derived one is decoded. A version once told by its hash keeps it. Any thread. */
#ifndef STORAGE_FILES_FILE_HASH_H
#define STORAGE_FILES_FILE_HASH_H

#include "storage/core/store.h"

/* For who needs the hashes of these versions (rows; copied) now, as a listing does. Index reads run
 * on a helper; what must be decoded is left to the worker, and `done` comes after all of it, from
 * another thread, perhaps before this returns. Versions that have a hash, or are gone, cost
 * nothing. */
struct file_hash_wait;
struct file_hash_wait *file_hash_start(struct store *store, const int64_t *versions, size_t count,
	void (*done)(void *owner), void *owner);
/* Nobody waits for it any more: `done` comes now, within this call, unless it came before; the
 * outcome is busy then. What is under way goes on until its next file. Any thread, until free. */
void file_hash_give_up(struct file_hash_wait *wait);
/* After done: 0 when each version that is still there has its hash; else the first failure
 * (corrupt, busy, ...), the others have theirs. */
int file_hash_outcome(const struct file_hash_wait *wait, struct error *err);
void file_hash_free(struct file_hash_wait *wait); /* after done */

#endif
