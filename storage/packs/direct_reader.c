/* O_DIRECT asks for offsets, lengths and memory in whole blocks. So each read goes to memory of the
 * reader first, from the block that has its first byte to the block that has its last one. Blocks
 * of 4 KiB fit every disk in use; a device that wants more says EINVAL, and the reader gives the
 * flag up for good. */
#include "storage/packs/direct_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { DIRECT_BLOCK = 4096 };

struct direct_reader {
	const struct file_ops *files;
	const char *path;
	int fd;
	uint8_t *memory;
	uint8_t *blocks; /* in `memory`, where the first block begins */
	size_t capacity; /* of `blocks`; whole blocks */
};

static int open_flags(const struct file_ops *files, const char *path, int flags);
static void make_room(struct direct_reader *reader, size_t bytes);
static int read_blocks(
	struct direct_reader *reader, uint64_t from, size_t size, size_t wanted, struct error *err);
static ssize_t read_some(struct direct_reader *reader, size_t done, size_t size, uint64_t from);
static bool give_up_flag(const struct direct_reader *reader);
static int ended(const struct direct_reader *reader, uint64_t at, struct error *err);

int direct_reader_open(const struct file_ops *files, const char *path, struct error *err)
{
	int fd = open_flags(files, path, O_DIRECT);
	if (fd < 0 && errno == EINVAL)
		fd = open_flags(files, path, 0);
	return fd < 0 ? error_set_errno(err, "cannot open %s", path) : fd;
}

struct direct_reader *direct_reader_new(const struct file_ops *files, int fd, const char *path)
{
	struct direct_reader *const reader = memory_new(sizeof(*reader));
	reader->files = files;
	reader->fd = fd;
	reader->path = path;
	return reader;
}

void direct_reader_free(struct direct_reader *reader)
{
	if (reader == NULL)
		return;
	free(reader->memory);
	free(reader);
}

int direct_reader_read(
	struct direct_reader *reader, struct iovec into, uint64_t offset, struct error *err)
{
	const size_t before = (size_t)(offset % DIRECT_BLOCK);
	const size_t wanted = before + into.iov_len;
	const size_t size = (wanted + DIRECT_BLOCK - 1) / DIRECT_BLOCK * DIRECT_BLOCK;
	if (into.iov_len == 0)
		return 0;
	make_room(reader, size);
	if (read_blocks(reader, offset - before, size, wanted, err) != 0)
		return -1;
	memcpy(into.iov_base, reader->blocks + before, into.iov_len);
	return 0;
}

static int open_flags(const struct file_ops *files, const char *path, int flags)
{
	return files->open(files, path, O_RDONLY | O_CLOEXEC | flags, 0);
}

static void make_room(struct direct_reader *reader, size_t bytes)
{
	if (bytes <= reader->capacity)
		return;
	free(reader->memory);
	reader->memory = memory_new(bytes + DIRECT_BLOCK);
	reader->blocks = reader->memory + DIRECT_BLOCK - (uintptr_t)reader->memory % DIRECT_BLOCK;
	reader->capacity = bytes;
}

/* Reads `size` bytes at `from`, of which the file must have the first `wanted`. A read that ends
 * inside a block ended with the file. */
static int read_blocks(
	struct direct_reader *reader, uint64_t from, size_t size, size_t wanted, struct error *err)
{
	size_t done = 0;
	while (done < wanted) {
		const ssize_t got = read_some(reader, done, size, from);
		if (got < 0)
			return error_set_errno(err, "cannot read %s", reader->path);
		done += (size_t)got;
		if (done < wanted && (got == 0 || done % DIRECT_BLOCK != 0))
			return ended(reader, from + done, err);
	}
	return 0;
}

static ssize_t read_some(struct direct_reader *reader, size_t done, size_t size, uint64_t from)
{
	const struct iovec rest = {.iov_base = reader->blocks + done, .iov_len = size - done};
	ssize_t got;
	do
		got = reader->files->preadv(
			reader->files, reader->fd, &rest, 1, (off_t)(from + done));
	while (got < 0 && (errno == EINTR || (errno == EINVAL && give_up_flag(reader))));
	return got;
}

/* False when the flag is not set any more. */
static bool give_up_flag(const struct direct_reader *reader)
{
	const int flags = fcntl(reader->fd, F_GETFL);
	const bool is_direct = flags >= 0 && (flags & O_DIRECT) != 0;
	const bool is_gone = is_direct && fcntl(reader->fd, F_SETFL, flags & ~O_DIRECT) == 0;
	if (!is_gone)
		errno = EINVAL;
	return is_gone;
}

static int ended(const struct direct_reader *reader, uint64_t at, struct error *err)
{
	return error_set(err, ERROR_CORRUPT, "%s ends at byte %llu, inside a record.", reader->path,
		(unsigned long long)at);
}
