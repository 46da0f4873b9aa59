/* Files of a far source in blocks on the local disk: FOLDER/xx/NAME is sparse and has the blocks
 * that are here, where xx is the first two characters of the name. The sum of the blocks is
 * bounded: the least recently used ones go first, but none of a file that was written here and is
 * not stored yet. A block is fetched once, however many wait for it, and blocks ahead of a reader
 * that reads in order are fetched before it asks. What is here survives a restart.
 *
 * The cache does not verify: a caller that finds bytes wrong says so (block_file_forget), and the
 * next read fetches them again. A local disk that is full or fails costs fetches, and never fails a
 * read of bytes that the source has. Internally locked; any thread. */
#ifndef STORAGE_FAR_BLOCK_CACHE_H
#define STORAGE_FAR_BLOCK_CACHE_H

#include "base/error.h"
#include "base/file.h"

struct block_cache;
struct block_file;

/* Where the bytes come from. Both calls may wait for a network; any thread. */
struct block_source {
	/* not_found when there is no such file */
	int (*size)(struct block_source *source, const char *name, uint64_t *out_bytes,
		struct error *err);
	/* Reads exactly `into`. Sets *out_total to the bytes of the whole file. */
	int (*read)(struct block_source *source, const char *name, uint64_t offset,
		struct iovec into, uint64_t *out_total, struct error *err);
};
struct block_cache_options {
	const char *folder;           /* copied; made when it is absent */
	const struct file_ops *files; /* borrowed; NULL: the real ones */
	struct block_source *source;  /* borrowed */
	uint64_t max_bytes;           /* of blocks on the disk */
	uint32_t block_bytes;         /* a multiple of 4096; 0: 4 MiB */
	unsigned threads;             /* that fetch; 0: 8 */
	unsigned open_files;          /* descriptors kept open; 0: 128 */
};
struct block_cache *block_cache_open(const struct block_cache_options *options, struct error *err);
/* All files must be closed. The caller first makes the calls of the source fail. */
void block_cache_close(struct block_cache *cache);

/* Opens a file for reading. Never waits and never fails: what the source does not have shows at the
 * first read. */
struct block_file *block_cache_file(struct block_cache *cache, const char *name);
/* A new, empty file that grows here. It is read like any other. What the last process wrote and did
 * not store is gone. exists when another one is being written. */
struct block_file *block_cache_create(
	struct block_cache *cache, const char *name, struct error *err);
/* A file that was written and not stored stays until block_cache_remove. */
void block_file_close(struct block_file *file);
/* Removes what is here of a file. Readers that have it open get the rest from the source. False:
 * the file was written here and never sent, so that the source cannot have it. */
bool block_cache_remove(struct block_cache *cache, const char *name);

/* Only for files of block_cache_create, one thread at a time. `offset` is at most the end. */
int block_file_write(
	struct block_file *file, struct span bytes, uint64_t offset, struct error *err);
int block_file_truncate(struct block_file *file, uint64_t length, struct error *err);
/* From now on the source may have it. */
void block_file_sent(struct block_file *file);
/* The source has it whole: its blocks are like all others from now on, and it grows no more. Again:
 * does nothing. */
void block_file_stored(struct block_file *file);

/* As the operations of struct backend. */
int block_file_read(struct block_file *file, const struct iovec *parts, int count, uint64_t offset,
	struct error *err);
int block_file_size(struct block_file *file, uint64_t *out_bytes, struct error *err);
bool block_file_is_near(struct block_file *file, uint64_t offset, uint64_t length);
typedef void block_wake_fn(void *owner); /* any thread, without a lock */
void block_file_fetch(struct block_file *file, uint64_t offset, uint64_t length,
	block_wake_fn *wake, void *owner);
void block_file_forget(struct block_file *file, uint64_t offset, uint64_t length);

const char *block_file_name(const struct block_file *file);
/* Opens a file that is here whole and does not grow; else NULL. */
struct block_file *block_cache_whole(
	struct block_cache *cache, const char *name, uint64_t *out_bytes);

#endif
