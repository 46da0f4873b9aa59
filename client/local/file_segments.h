/* The chunks of a large file, found by several threads at once: exactly those that
 * chunker/chunk_stream.h finds. A thread reads a segment and marks where chunks may end in it;
 * then, in the order of the segments, where they do end follows in no time; then it hashes the
 * chunks that end in its segment while others read on. Each thread takes a little over a MiB of
 * memory. */
#ifndef CLIENT_LOCAL_FILE_SEGMENTS_H
#define CLIENT_LOCAL_FILE_SEGMENTS_H

#include "base/error.h"
#include "chunker/chunk.h"

struct interrupt;
struct progress;

enum { FILE_SEGMENTS_BYTES = 1024 * 1024, FILE_SEGMENTS_WORKERS_MAX = 32 };

struct file_segments {
	int fd;
	const char *path; /* for messages */
	uint64_t size;    /* of the file, over 0 */
	const struct interrupt *interrupt;
	struct progress *progress; /* counts what was read; may be NULL */
	unsigned workers;          /* 0: one for each processor */
	size_t segment_bytes;      /* 0: FILE_SEGMENTS_BYTES; else a number of your own, over 0 */
};
/* *out_entries: all chunks in file order; heap, the caller's. busy when a signal came, invalid when
 * the file got shorter meanwhile. */
int file_segments_read(const struct file_segments *segments, struct chunk_entry **out_entries,
	size_t *out_count, struct error *err);

#endif
