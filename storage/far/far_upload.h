/* Files on their way to an S3 store. A file of at most one part goes up in one request; a larger
 * one in parts, of which several go up at the same time, also while the file still grows. The parts
 * are read from the file itself, so that only parts on their way take memory. Any thread; one at a
 * time for each upload. */
#ifndef STORAGE_FAR_FAR_UPLOAD_H
#define STORAGE_FAR_FAR_UPLOAD_H

#include "base/net/s3/s3_client.h"
#include "storage/far/block_cache.h"

struct far_uploads; /* the threads, and what all uploads share */
struct far_upload;

struct far_uploads_options {
	struct s3_client *client;  /* borrowed */
	struct block_cache *cache; /* borrowed */
	unsigned threads;
	size_t part_bytes; /* at least S3_PART_MIN_BYTES for a real service */
};
struct far_uploads *far_uploads_open(const struct far_uploads_options *options);
/* All uploads must be freed. The caller first cancels the client. */
void far_uploads_close(struct far_uploads *uploads);

/* `name` is a file that is being written in the cache; `key` its name at the store. Both are
 * copied. `is_early`: parts go up as soon as they are whole. */
struct far_upload *far_upload_new(
	struct far_uploads *uploads, const char *name, const char *key, bool is_early);
/* The file has `length` bytes now. Does not wait. */
void far_upload_grow(struct far_upload *upload, uint64_t length);
/* The bytes from `length` on are about to change: they go up again. */
void far_upload_cut(struct far_upload *upload, uint64_t length);
/* Returns 0 when the store has the whole file of `length` bytes. After a failure it can be called
 * again: what has gone up stays. */
int far_upload_finish(struct far_upload *upload, uint64_t length, struct error *err);
/* Parts of an upload that is not finished are given up, in the background. */
void far_upload_free(struct far_upload *upload);

/* Stores bytes in one request. A request without an answer has succeeded when an object of that
 * length is there: names are never used twice for other bytes of the same length. */
int far_upload_put(struct s3_client *client, const char *key, struct span bytes, struct error *err);

#endif
