#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "storage/far/block_cache_internal.h"

static int scan_folder(struct block_cache *cache, const char *part, struct error *err);
static void scan_file(struct block_cache *cache, const char *part, const char *name);
static bool is_unstored(const char *name);
static void take_blocks(struct block_file *file, int fd);
static void take_extent(struct block_file *file, uint64_t from, uint64_t to);

int block_scan_run(struct block_cache *cache, struct error *err)
{
	char **names = NULL;
	size_t count = 0;
	if (file_list(cache->folder, &names, &count, err) != 0)
		return -1;
	int result = 0;
	for (size_t i = 0; i < count && result == 0; i++)
		if (strlen(names[i]) == BLOCK_PREFIX)
			result = scan_folder(cache, names[i], err);
	file_names_free(names, count);
	if (result == 0)
		(void)block_room_make(cache, 0);
	return result;
}

static int scan_folder(struct block_cache *cache, const char *part, struct error *err)
{
	char path[BLOCK_PATH_BYTES];
	char **names = NULL;
	size_t count = 0;
	snprintf(path, sizeof(path), "%s/%s", cache->folder, part);
	if (file_list(path, &names, &count, err) != 0)
		return -1;
	for (size_t i = 0; i < count; i++)
		if (strncmp(names[i], part, BLOCK_PREFIX) == 0 && strlen(names[i]) > BLOCK_PREFIX)
			scan_file(cache, part, names[i]);
	file_names_free(names, count);
	return 0;
}

/* What cannot be read is of no use. */
static void scan_file(struct block_cache *cache, const char *part, const char *name)
{
	char path[BLOCK_PATH_BYTES];
	struct stat facts;
	const int len = snprintf(path, sizeof(path), "%s/%s/%s", cache->folder, part, name);
	if (len < 0 || (size_t)len >= sizeof(path))
		return;
	const int fd = is_unstored(name)
		? -1
		: cache->files->open(cache->files, path, O_RDWR | O_CLOEXEC, 0600);
	lock_enter(&cache->lock);
	struct block_file *const file = fd < 0 ? NULL : block_cache_add(cache, name);
	if (file != NULL && fstat(fd, &facts) == 0 && facts.st_size > 0) {
		file->length = (uint64_t)facts.st_size;
		file->has_length = true;
		take_blocks(file, fd);
	}
	if (file != NULL)
		block_cache_settle_file(file); /* one without a block is removed */
	lock_leave(&cache->lock);
	if (fd >= 0)
		close(fd);
	else
		(void)cache->files->unlink(cache->files, path);
}

static bool is_unstored(const char *name)
{
	return span_ends_text(span_text(name), ".new");
}

static void take_blocks(struct block_file *file, int fd)
{
	off_t from = 0;
	while ((from = lseek(fd, from, SEEK_DATA)) >= 0) {
		const off_t to = lseek(fd, from, SEEK_HOLE);
		if (to <= from)
			return;
		take_extent(file, (uint64_t)from, (uint64_t)to);
		from = to;
	}
}

/* The blocks that lie whole in it. A block that the end of the process cut is not whole, or its
 * bytes are wrong and are found so when they are read. */
static void take_extent(struct block_file *file, uint64_t from, uint64_t to)
{
	const uint64_t size = file->cache->block_bytes;
	for (uint64_t i = (from + size - 1) / size; i * size < to; i++) {
		const uint32_t length = block_cache_length(file, (uint32_t)i);
		if (i * size + length > to)
			return;
		file->cache->bytes += length;
		block_cache_hold(block_cache_block(file, (uint32_t)i));
	}
}
