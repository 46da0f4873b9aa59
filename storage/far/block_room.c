#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "storage/far/block_cache_internal.h"

enum { RELIEF_BLOCKS = 4 };

static struct block *begin_eviction(struct block_cache *cache);
static void evict(struct block *block);
static bool empty_place(struct block *block, uint32_t length);
static int take_fd(struct block_file *file, int fd);
static int open_local(const struct block_file *file, uint64_t length, struct error *err);
static int take_surplus(struct block_cache *cache, int closed[], int capacity);
static void fd_list_add(struct block_file *file);
static void fd_list_take(struct block_file *file);

void block_room_add(struct block_list *list, struct block *block)
{
	block->newer = NULL;
	block->older = list->newest;
	if (list->newest != NULL)
		list->newest->newer = block;
	list->newest = block;
	if (list->oldest == NULL)
		list->oldest = block;
	list->count++;
}

void block_room_take(struct block_list *list, struct block *block)
{
	*(block->newer != NULL ? &block->newer->older : &list->newest) = block->older;
	*(block->older != NULL ? &block->older->newer : &list->oldest) = block->newer;
	list->count--;
}

bool block_room_make(struct block_cache *cache, uint64_t bytes)
{
	struct block *block = NULL;
	bool has_room;
	lock_enter(&cache->lock);
	cache->bytes += bytes;
	while (!(has_room = cache->bytes <= cache->max_bytes) &&
		(block = begin_eviction(cache)) != NULL)
		evict(block);
	if (!has_room)
		cache->bytes -= bytes;
	lock_leave(&cache->lock);
	return has_room;
}

void block_room_relieve(struct block_cache *cache)
{
	lock_enter(&cache->lock);
	for (int i = 0; i < RELIEF_BLOCKS; i++) {
		struct block *const block = begin_eviction(cache);
		if (block != NULL)
			evict(block);
	}
	lock_leave(&cache->lock);
}

/* The least recently used block that nobody reads. */
static struct block *begin_eviction(struct block_cache *cache)
{
	struct block *block = cache->held.oldest;
	while (block != NULL && block->pins > 0)
		block = block->newer;
	if (block == NULL)
		return NULL;
	block_room_take(&cache->held, block);
	block->state = BLOCK_LEAVING;
	return block;
}

/* Under the lock, which it leaves for the I/O. */
static void evict(struct block *block)
{
	struct block_file *const file = block->file;
	struct block_cache *const cache = file->cache;
	const uint32_t length = block_cache_length(file, block->number);
	const bool is_last = file->present == 1 && file->users == 0;
	file->users++; /* it stays meanwhile */
	if (!is_last) {
		lock_leave(&cache->lock);
		(void)empty_place(block, length);
		lock_enter(&cache->lock);
	}
	file->users--;
	cache->bytes -= length;
	block->state = BLOCK_ABSENT;
	if (block->pins > 0 || block->waits != NULL)
		block_fetch_queue(block, true); /* somebody came meanwhile */
	block_cache_settle_block(block);
	lock_broadcast(&cache->moved);
	block_cache_settle_file(file);
}

/* Where a file system makes no holes the bytes stay until the file goes. */
static bool empty_place(struct block *block, uint32_t length)
{
	struct block_file *const file = block->file;
	struct error ignored;
	int fd;
	if (block_room_open(file, false, &fd, &ignored) != 0)
		return false;
	const bool is_done =
		fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			(off_t)block->number * file->cache->block_bytes, (off_t)length) == 0;
	block_room_give(file);
	return is_done;
}

int block_room_open(struct block_file *file, bool is_made, int *out_fd, struct error *err)
{
	struct block_cache *const cache = file->cache;
	lock_enter(&cache->lock);
	while (file->is_leaving)
		lock_wait(&cache->lock, &cache->moved);
	file->fd_users++;
	*out_fd = file->fd;
	const uint64_t length = is_made ? file->length : 0;
	lock_leave(&cache->lock);
	if (*out_fd >= 0)
		return 0;
	const int fd = open_local(file, length, err);
	if (fd >= 0)
		*out_fd = take_fd(file, fd);
	else
		block_room_give(file);
	return fd >= 0 ? 0 : -1;
}

/* Another thread may have been faster. */
static int take_fd(struct block_file *file, int fd)
{
	struct block_cache *const cache = file->cache;
	lock_enter(&cache->lock);
	const bool is_first = file->fd < 0;
	if (is_first)
		block_room_set_fd(file, fd);
	const int taken = file->fd;
	lock_leave(&cache->lock);
	if (!is_first)
		close(fd);
	return taken;
}

/* `length` 0: it must be there. */
static int open_local(const struct block_file *file, uint64_t length, struct error *err)
{
	const struct file_ops *const files = file->cache->files;
	char path[BLOCK_PATH_BYTES];
	struct stat facts;
	block_cache_path(file, false, path);
	if (length > 0 && file_make_parent(files, path, 0700, err) != 0)
		return -1;
	const int flags = O_RDWR | O_CLOEXEC | (length > 0 ? O_CREAT : 0);
	const int fd = files->open(files, path, flags, 0600);
	if (fd < 0)
		return error_set_errno(err, "cannot open %s", path);
	if (length == 0 || (fstat(fd, &facts) == 0 && (uint64_t)facts.st_size == length) ||
		files->ftruncate(files, fd, (off_t)length) == 0)
		return fd;
	(void)error_set_errno(err, "cannot set the length of %s", path);
	close(fd);
	return -1;
}

void block_room_give(struct block_file *file)
{
	struct block_cache *const cache = file->cache;
	enum { BATCH = 8 };
	int closed[BATCH];
	lock_enter(&cache->lock);
	ASSERT(file->fd_users > 0);
	file->fd_users--;
	if (file->fd >= 0) {
		fd_list_take(file);
		fd_list_add(file);
	}
	const int count = take_surplus(cache, closed, BATCH);
	block_cache_settle_file(file);
	lock_leave(&cache->lock);
	for (int i = 0; i < count; i++)
		close(closed[i]);
}

static int take_surplus(struct block_cache *cache, int closed[], int capacity)
{
	int count = 0;
	struct block_file *file = cache->fd_oldest;
	while (file != NULL && count < capacity && cache->open_files > cache->open_max) {
		struct block_file *const newer = file->fd_newer;
		if (file->fd_users == 0)
			closed[count++] = block_room_take_fd(file);
		file = newer;
	}
	return count;
}

void block_room_set_fd(struct block_file *file, int fd)
{
	file->fd = fd;
	file->cache->open_files++;
	fd_list_add(file);
}

int block_room_take_fd(struct block_file *file)
{
	const int fd = file->fd;
	if (fd < 0 || file->fd_users > 0)
		return -1;
	fd_list_take(file);
	file->fd = -1;
	file->cache->open_files--;
	return fd;
}

static void fd_list_add(struct block_file *file)
{
	struct block_cache *const cache = file->cache;
	file->fd_newer = NULL;
	file->fd_older = cache->fd_newest;
	if (cache->fd_newest != NULL)
		cache->fd_newest->fd_newer = file;
	cache->fd_newest = file;
	if (cache->fd_oldest == NULL)
		cache->fd_oldest = file;
}

static void fd_list_take(struct block_file *file)
{
	struct block_cache *const cache = file->cache;
	*(file->fd_newer != NULL ? &file->fd_newer->fd_older : &cache->fd_newest) = file->fd_older;
	*(file->fd_older != NULL ? &file->fd_older->fd_newer : &cache->fd_oldest) = file->fd_newer;
}
