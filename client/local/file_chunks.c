/* Large files are read by several threads (file_segments.h). Small files are read by one, because
 * they come in great numbers, with one thread per connection already. The facts are taken from the
 * descriptor before and after reading: if they differ, the chunks are refused. */
#include "client/local/file_chunks.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "chunker/chunk_hash.h"
#include "chunker/chunk_stream.h"
#include "chunker/merkle.h"
#include "client/local/file_segments.h"
#include "client/work/stop.h"
#include "client/work/progress.h"

enum {
	SEGMENTS_MIN_BYTES = 4 * 1024 * 1024, /* smaller files are read by one thread */
	READ_BLOCK_BYTES = 1024 * 1024,
	NS_PER_SECOND = 1000000000
};

struct collector {
	struct file_chunks *chunks;
	size_t capacity;
	struct merkle merkle;
};

static int take_facts(
	const struct stat *stat, const char *path, struct file_facts *out, struct error *err);
static int64_t nanoseconds(const struct timespec *time);
static int read_open(int fd, const char *path, const struct stop *stop, struct progress *progress,
	struct file_chunks *out, struct error *err);
static int read_by_segments(int fd, const char *path, const struct stop *stop,
	struct progress *progress, struct file_chunks *out, struct error *err);
static int read_by_stream(int fd, const char *path, const struct stop *stop,
	struct file_chunks *out, struct error *err);
static int file_chunks_collect(
	void *taker, const struct chunk_id *id, struct span content, struct error *err);
static int push_all(int fd, const char *path, const struct stop *stop, struct chunk_stream *stream,
	struct error *err);

int file_facts_read(const char *path, struct file_facts *out, struct error *err)
{
	struct stat facts;
	if (stat(path, &facts) != 0)
		return error_set_errno(err, "looking at %s", path);
	return take_facts(&facts, path, out, err);
}

int file_facts_of(int fd, const char *path, struct file_facts *out, struct error *err)
{
	struct stat facts;
	if (fstat(fd, &facts) != 0)
		return error_set_errno(err, "looking at %s", path);
	return take_facts(&facts, path, out, err);
}

bool file_facts_equal(const struct file_facts *a, const struct file_facts *b)
{
	return a->size == b->size && a->mtime_ns == b->mtime_ns && a->ctime_ns == b->ctime_ns &&
		a->inode == b->inode && a->device == b->device;
}

int file_chunks_read(
	const char *path, const struct stop *stop, struct file_chunks *out, struct error *err)
{
	return file_chunks_read_shown(path, stop, NULL, out, err);
}

int file_chunks_read_shown(const char *path, const struct stop *stop, struct progress *progress,
	struct file_chunks *out, struct error *err)
{
	*out = (struct file_chunks){0};
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return error_set_errno(err, "opening %s", path);
	const int result = read_open(fd, path, stop, progress, out, err);
	close(fd);
	if (result != 0)
		file_chunks_release(out);
	return result;
}

void file_chunks_release(struct file_chunks *chunks)
{
	free(chunks->entries);
	*chunks = (struct file_chunks){0};
}

static int take_facts(
	const struct stat *stat, const char *path, struct file_facts *out, struct error *err)
{
	if (!S_ISREG(stat->st_mode))
		return error_set(err, ERROR_INVALID, "%s is not a regular file", path);
	*out = (struct file_facts){
		.size = (uint64_t)stat->st_size,
		.mtime_ns = nanoseconds(&stat->st_mtim),
		.ctime_ns = nanoseconds(&stat->st_ctim),
		.inode = stat->st_ino,
		.device = stat->st_dev,
	};
	return 0;
}

static int64_t nanoseconds(const struct timespec *time)
{
	return (int64_t)time->tv_sec * NS_PER_SECOND + time->tv_nsec;
}

static int read_open(int fd, const char *path, const struct stop *stop, struct progress *progress,
	struct file_chunks *out, struct error *err)
{
	struct file_facts after;
	if (file_facts_of(fd, path, &out->facts, err) != 0)
		return -1;
	posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	const bool is_large = out->facts.size >= SEGMENTS_MIN_BYTES;
	int result = is_large ? read_by_segments(fd, path, stop, progress, out, err)
			      : read_by_stream(fd, path, stop, out, err);
	if (result == 0 && !is_large)
		progress_add(progress, out->facts.size);
	if (result == 0)
		result = file_facts_of(fd, path, &after, err);
	if (result == 0 && !file_facts_equal(&out->facts, &after))
		result = error_set(err, ERROR_INVALID, "%s changed while it was read", path);
	return result;
}

static int read_by_segments(int fd, const char *path, const struct stop *stop,
	struct progress *progress, struct file_chunks *out, struct error *err)
{
	ASSERT(out->entries == NULL && out->facts.size >= SEGMENTS_MIN_BYTES);
	const struct file_segments segments = {.fd = fd,
		.path = path,
		.size = out->facts.size,
		.stop = stop,
		.progress = progress};
	if (file_segments_read(&segments, &out->entries, &out->count, err) != 0)
		return -1;
	out->hash = chunk_hash_file(out->entries, out->count);
	return 0;
}

static int read_by_stream(int fd, const char *path, const struct stop *stop,
	struct file_chunks *out, struct error *err)
{
	struct collector *const collector = memory_new(sizeof(*collector));
	collector->chunks = out;
	merkle_init(&collector->merkle);
	struct chunk_stream *const stream = chunk_stream_new(file_chunks_collect, collector);
	const int result = push_all(fd, path, stop, stream, err);
	chunk_stream_free(stream);
	out->hash = merkle_file(&collector->merkle);
	free(collector);
	return result;
}

static int file_chunks_collect(
	void *taker, const struct chunk_id *id, struct span content, struct error *err)
{
	struct collector *const collector = taker;
	struct file_chunks *const chunks = collector->chunks;
	(void)err;
	chunks->entries = memory_make_room(
		chunks->entries, chunks->count, &collector->capacity, sizeof(*chunks->entries));
	struct chunk_entry *const entry = &chunks->entries[chunks->count++];
	*entry = (struct chunk_entry){.id = *id, .size = content.len};
	merkle_add(&collector->merkle, entry);
	return 0;
}

static int push_all(int fd, const char *path, const struct stop *stop, struct chunk_stream *stream,
	struct error *err)
{
	uint8_t *const block = memory_new(READ_BLOCK_BYTES);
	int result = 0;
	ssize_t len = 1;
	while (result == 0 && len != 0) {
		len = read(fd, block, READ_BLOCK_BYTES);
		if (len < 0 && errno == EINTR)
			continue;
		if (len < 0)
			result = error_set_errno(err, "reading %s", path);
		else
			result = chunk_stream_push(stream, span_of(block, (size_t)len), err);
		if (result == 0)
			result = stop_check(stop, err);
	}
	free(block);
	return result == 0 ? chunk_stream_end(stream, err) : -1;
}
