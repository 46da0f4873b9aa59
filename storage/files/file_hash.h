/* The Xet file hashes of versions that were committed without one: multipart uploads, and versions
 * that the server made. The hash of a version with segments follows from the indexes of their
 * packs, without reading content. A derived version must be decoded. A version keeps the hash that
 * it once got. Any thread. */
#ifndef STORAGE_FILES_FILE_HASH_H
#define STORAGE_FILES_FILE_HASH_H

#include "storage/core/store.h"

/* A request for the hashes of these versions (rows; copied), for callers that need them now, such
 * as listings. A helper reads indexes; the worker decodes. `done` is called once after all of it,
 * on another thread and possibly before this returns. Versions that have a hash, or are gone, cost
 * nothing. */
struct file_hash_wait;
struct file_hash_wait *file_hash_start(struct store *store, const int64_t *versions, size_t count,
	void (*done)(void *owner), void *owner);
/* Ends the wait early: calls `done` within this call, unless it was called before; the outcome is
 * then busy. The work stops before its next file. Any thread, until free. */
void file_hash_give_up(struct file_hash_wait *wait);
/* After `done`: 0 when each version that still exists has its hash. Else the first failure
 * (corrupt, busy, ...); the other versions have their hashes. */
int file_hash_outcome(const struct file_hash_wait *wait, struct error *err);
void file_hash_free(struct file_hash_wait *wait); /* after `done`; NULL is fine */

#endif
