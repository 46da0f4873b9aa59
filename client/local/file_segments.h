/* Finds the chunks of a large file with several threads: exactly those that chunker/chunk_stream.h
 * finds. Each thread uses a little over 1 MiB of memory. */
#ifndef CLIENT_LOCAL_FILE_SEGMENTS_H
#define CLIENT_LOCAL_FILE_SEGMENTS_H

#include "base/error.h"
#include "chunker/chunk.h"

struct stop;
struct progress;

enum { FILE_SEGMENTS_BYTES = 1024 * 1024, FILE_SEGMENTS_WORKERS_MAX = 32 };

struct file_segments {
	int fd;
	const char *path;          /* for messages */
	uint64_t size;             /* of the file, over 0 */
	const struct stop *stop;   /* may be NULL */
	struct progress *progress; /* counts the bytes that were read; may be NULL */
	unsigned workers;          /* threads; 0: one for each processor */
	size_t segment_bytes;      /* 0: FILE_SEGMENTS_BYTES */
};
/* *out_entries has all chunks in file order; the caller frees it. busy when a signal has come,
 * invalid when the file became shorter meanwhile. */
int file_segments_read(const struct file_segments *segments, struct chunk_entry **out_entries,
	size_t *out_count, struct error *err);

#endif
