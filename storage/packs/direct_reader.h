/* Reads a file past the page cache (O_DIRECT): what it reads is what the disk has, and the pages
 * of other readers stay in memory. Where the file system cannot do that, as tmpfs on older kernels,
 * its reads are plain ones. One thread at a time. Internal to storage. */
#ifndef STORAGE_PACKS_DIRECT_READER_H
#define STORAGE_PACKS_DIRECT_READER_H

#include "base/file.h"

/* Opens `path` for reading, with O_DIRECT where the file system takes it. The descriptor is the
 * caller's; -1 with the error set, not_found when there is no such file. */
int direct_reader_open(const struct file_ops *files, const char *path, struct error *err);

struct direct_reader;
/* Borrows the descriptor and the path, which names the file in errors. */
struct direct_reader *direct_reader_new(const struct file_ops *files, int fd, const char *path);
void direct_reader_free(struct direct_reader *reader); /* NULL is fine */
/* Fills `into` from any offset: it reads whole blocks around it into memory of its own, which grows
 * to the largest read. corrupt when the file ends before. */
int direct_reader_read(
	struct direct_reader *reader, struct iovec into, uint64_t offset, struct error *err);

#endif
