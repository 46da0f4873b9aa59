/* A local file as chunks: the boundaries, ids and file hash that any Xet client finds. Any thread.
 * docs/FORMAT.md, "Chunks". */
#ifndef CLIENT_LOCAL_FILE_CHUNKS_H
#define CLIENT_LOCAL_FILE_CHUNKS_H

#include "base/error.h"
#include "chunker/chunk.h"

struct interrupt;
struct progress;

/* What tells a file from what it was before, without reading it. */
struct file_facts {
	uint64_t size;
	int64_t mtime_ns;
	int64_t ctime_ns;
	uint64_t inode;
	uint64_t device;
};
/* invalid for what is no regular file. */
int file_facts_read(const char *path, struct file_facts *out, struct error *err);
int file_facts_of(int fd, const char *path, struct file_facts *out, struct error *err);
bool file_facts_equal(const struct file_facts *a, const struct file_facts *b);

struct file_chunks {
	struct chunk_entry *entries; /* in file order */
	size_t count;
	struct chunk_id hash; /* of the file: zeros for an empty one */
	struct file_facts facts;
};
/* Reads all of it, once. busy when a signal came, invalid when the file changed meanwhile. */
int file_chunks_read(const char *path, const struct interrupt *interrupt, struct file_chunks *out,
	struct error *err);
/* Counts what it reads. */
int file_chunks_read_shown(const char *path, const struct interrupt *interrupt,
	struct progress *progress, struct file_chunks *out, struct error *err);
void file_chunks_release(struct file_chunks *chunks); /* a zeroed one is fine */

#endif
