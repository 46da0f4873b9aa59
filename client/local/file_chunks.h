/* A local file as chunks: the same boundaries, ids and file hash that every Xet client computes.
 * Any thread. docs/FORMAT.md, "Chunks". */
#ifndef CLIENT_LOCAL_FILE_CHUNKS_H
#define CLIENT_LOCAL_FILE_CHUNKS_H

#include "base/error.h"
#include "chunker/chunk.h"

struct stop;
struct progress;

/* These facts show, without reading a file, whether it has changed. */
struct file_facts {
	uint64_t size;
	int64_t mtime_ns;
	int64_t ctime_ns;
	uint64_t inode;
	uint64_t device;
};
/* Fail with invalid when the path or descriptor is not a regular file. `path` names it in
 * messages. */
int file_facts_read(const char *path, struct file_facts *out, struct error *err);
int file_facts_of(int fd, const char *path, struct file_facts *out, struct error *err);
bool file_facts_equal(const struct file_facts *a, const struct file_facts *b);

struct file_chunks {
	struct chunk_entry *entries; /* in file order */
	size_t count;
	struct chunk_id hash; /* of the file; zeros for an empty file */
	struct file_facts facts;
};
/* Reads the whole file, once. busy when a signal has come, invalid when the file changed meanwhile.
 * After a failure `out` has nothing to release. `stop` may be NULL. */
int file_chunks_read(
	const char *path, const struct stop *stop, struct file_chunks *out, struct error *err);
/* The same; counts the bytes that it reads in `progress`, which may be NULL. */
int file_chunks_read_shown(const char *path, const struct stop *stop, struct progress *progress,
	struct file_chunks *out, struct error *err);
void file_chunks_release(struct file_chunks *chunks); /* a zeroed one is fine */

#endif
