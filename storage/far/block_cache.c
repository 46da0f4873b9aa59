#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "storage/far/block_cache_internal.h"

static const uint32_t BLOCK_BYTES = 4 * 1024 * 1024;
enum { THREADS = 8, OPEN_FILES = 128, DISK_BLOCK = 4096 };

static void empty_queue(struct block_cache *cache);
static void free_files(struct block_cache *cache);
static struct block_file **bucket_of(struct block_cache *cache, const char *name);
static void unlink_node(struct block_file *file);
static void free_file(struct block_file *file);
static int make_local(struct block_file *file, struct error *err);
static void remove_local(struct block_file *file);
static int begin_change(struct block_file *file, int *out_fd, struct error *err);
static void set_length(struct block_file *file, uint64_t length);
static void adopt_blocks(struct block_file *file);

struct block_cache *block_cache_open(const struct block_cache_options *options, struct error *err)
{
	struct block_cache *const cache = memory_new(sizeof(*cache));
	cache->files = options->files != NULL ? options->files : file_system();
	cache->folder = memory_copy_text(options->folder);
	cache->source = options->source;
	cache->max_bytes = options->max_bytes;
	cache->block_bytes = options->block_bytes != 0 ? options->block_bytes : BLOCK_BYTES;
	cache->open_max = options->open_files != 0 ? options->open_files : OPEN_FILES;
	cache->thread_count = options->threads != 0 ? options->threads : THREADS;
	ASSERT(cache->block_bytes % DISK_BLOCK == 0);
	lock_init(&cache->lock, LOCK_BLOCK_CACHE);
	lock_condition_init(&cache->queued);
	lock_condition_init(&cache->moved);
	cache->threads = memory_new_array(cache->thread_count, sizeof(*cache->threads));
	const int result = file_make_folder(cache->files, cache->folder, 0700, err) != 0
		? -1
		: block_scan_run(cache, err);
	if (result != 0) {
		cache->thread_count = 0;
		block_cache_close(cache);
		return NULL;
	}
	for (unsigned i = 0; i < cache->thread_count; i++)
		lock_thread_start(&cache->threads[i], "blocks", block_fetch_run, cache);
	return cache;
}

void block_cache_close(struct block_cache *cache)
{
	lock_enter(&cache->lock);
	cache->is_ending = true;
	lock_broadcast(&cache->queued);
	lock_leave(&cache->lock);
	for (unsigned i = 0; i < cache->thread_count; i++)
		pthread_join(cache->threads[i], NULL);
	empty_queue(cache);
	free_files(cache);
	free(cache->threads);
	lock_condition_release(&cache->moved);
	lock_condition_release(&cache->queued);
	lock_release(&cache->lock);
	free(cache->folder);
	free(cache);
}

/* Blocks that no thread took any more. */
static void empty_queue(struct block_cache *cache)
{
	struct block_wait *over = NULL;
	lock_enter(&cache->lock);
	while (cache->first != NULL) {
		struct block *const block = cache->first;
		struct block_file *const file = block->file;
		cache->first = block->behind;
		struct block_wait **end = &block->waits;
		while (*end != NULL)
			end = &(*end)->next;
		*end = over;
		over = block->waits;
		block->waits = NULL;
		block->state = BLOCK_ABSENT;
		block_cache_settle_block(block);
		block_cache_settle_file(file);
	}
	lock_leave(&cache->lock);
	block_read_wake(over);
}

static void free_files(struct block_cache *cache)
{
	for (size_t i = 0; i < BLOCK_BUCKETS; i++)
		while (cache->buckets[i] != NULL) {
			struct block_file *const file = cache->buckets[i];
			ASSERT(file->users == 0);
			cache->buckets[i] = file->chained;
			for (uint32_t j = 0; j < file->capacity; j++)
				if (file->blocks[j] != NULL) {
					block_cache_release(file->blocks[j]->loose);
					free(file->blocks[j]->failure);
					free(file->blocks[j]);
				}
			free_file(file);
		}
}

static void free_file(struct block_file *file)
{
	if (file->fd >= 0)
		close(file->fd);
	free(file->blocks);
	free(file);
}

struct block_file *block_cache_file(struct block_cache *cache, const char *name)
{
	lock_enter(&cache->lock);
	struct block_file *file = block_cache_find(cache, name);
	if (file == NULL)
		file = block_cache_add(cache, name);
	file->users++;
	lock_leave(&cache->lock);
	return file;
}

struct block_file *block_cache_find(struct block_cache *cache, const char *name)
{
	struct block_file *file = *bucket_of(cache, name);
	while (file != NULL && strcmp(file->name, name) != 0)
		file = file->chained;
	return file;
}

static struct block_file **bucket_of(struct block_cache *cache, const char *name)
{
	static const uint32_t PRIME = 16777619;
	uint32_t hash = 2166136261U;
	for (const char *at = name; *at != '\0'; at++)
		hash = (hash ^ (uint8_t)*at) * PRIME;
	return &cache->buckets[hash % BLOCK_BUCKETS];
}

struct block_file *block_cache_add(struct block_cache *cache, const char *name)
{
	ASSERT(strlen(name) > BLOCK_PREFIX && strchr(name, '/') == NULL && name[0] != '.');
	struct block_file **const bucket = bucket_of(cache, name);
	struct block_file *const file = memory_new(sizeof(*file) + strlen(name) + 1);
	memcpy(file->name, name, strlen(name) + 1);
	file->cache = cache;
	file->fd = -1;
	file->last = UINT32_MAX;
	file->chained = *bucket;
	*bucket = file;
	return file;
}

/* One that the last process left, or that was read before, is of no use any more. */
struct block_file *block_cache_create(
	struct block_cache *cache, const char *name, struct error *err)
{
	lock_enter(&cache->lock);
	struct block_file *file = block_cache_find(cache, name);
	bool is_taken = file != NULL && file->is_new && file->users > 0;
	lock_leave(&cache->lock);
	if (!is_taken)
		(void)block_cache_remove(cache, name);
	lock_enter(&cache->lock);
	is_taken = is_taken || block_cache_find(cache, name) != NULL;
	if (!is_taken) {
		file = block_cache_add(cache, name);
		file->users = 1;
		file->is_new = true;
		file->has_length = true;
		file->is_measured = true;
	}
	lock_leave(&cache->lock);
	if (is_taken) {
		error_set(err, ERROR_EXISTS, "The file %s is being written already.", name);
		return NULL;
	}
	if (make_local(file, err) == 0)
		return file;
	block_file_close(file);
	(void)block_cache_remove(cache, name);
	return NULL;
}

/* Its descriptor stays open until it is stored or removed. */
static int make_local(struct block_file *file, struct error *err)
{
	char path[BLOCK_PATH_BYTES];
	const struct file_ops *const files = file->cache->files;
	block_cache_path(file, true, path);
	if (file_make_parent(files, path, 0700, err) != 0)
		return -1;
	const int fd = files->open(files, path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		return error_set_errno(err, "cannot create %s", path);
	lock_enter(&file->cache->lock);
	const bool is_new = file->is_new;
	if (is_new) {
		file->fd_users++;
		block_room_set_fd(file, fd);
	}
	lock_leave(&file->cache->lock);
	if (is_new)
		return 0;
	(void)files->unlink(files, path);
	close(fd);
	return error_set(err, ERROR_NOT_FOUND, "The file %s was removed.", file->name);
}

void block_cache_path(const struct block_file *file, bool is_new, char out[BLOCK_PATH_BYTES])
{
	snprintf(out, BLOCK_PATH_BYTES, "%s/%.*s/%s%s", file->cache->folder, BLOCK_PREFIX,
		file->name, file->name, is_new ? ".new" : "");
}

void block_file_close(struct block_file *file)
{
	struct block_cache *const cache = file->cache;
	lock_enter(&cache->lock);
	ASSERT(file->users > 0);
	if (--file->users == 0) {
		block_cache_drop_all(file, false);
		block_cache_settle_file(file);
	}
	lock_leave(&cache->lock);
}

void block_cache_drop_all(struct block_file *file, bool is_all)
{
	const uint32_t capacity = file->capacity;
	for (uint32_t i = 0; i < capacity; i++) {
		struct block *const block = file->blocks[i];
		if (block == NULL)
			continue;
		if (block->state == BLOCK_LOOSE || block->state == BLOCK_FAILED ||
			(is_all && block->state == BLOCK_HELD))
			block_cache_drop(block);
	}
}

void block_cache_settle_file(struct block_file *file)
{
	struct block_cache *const cache = file->cache;
	if (file->users > 0 || file->present > 0 || file->fd_users > 0 || file->is_new ||
		file->is_leaving)
		return;
	if (!file->is_removed) {
		file->is_leaving = true;
		lock_leave(&cache->lock);
		remove_local(file);
		lock_enter(&cache->lock);
		file->is_leaving = false;
		lock_broadcast(&cache->moved);
		if (file->users > 0 || file->present > 0 || file->fd_users > 0)
			return;
		unlink_node(file);
	}
	const int fd = block_room_take_fd(file);
	if (fd >= 0)
		close(fd);
	free_file(file);
}

/* What nothing is left of needs no name on the disk. */
static void remove_local(struct block_file *file)
{
	char path[BLOCK_PATH_BYTES];
	const struct file_ops *const files = file->cache->files;
	block_cache_path(file, false, path);
	(void)files->unlink(files, path);
	lock_enter(&file->cache->lock);
	const int fd = block_room_take_fd(file);
	lock_leave(&file->cache->lock);
	if (fd >= 0)
		close(fd);
}

static void unlink_node(struct block_file *file)
{
	struct block_file **link = bucket_of(file->cache, file->name);
	while (*link != file)
		link = &(*link)->chained;
	*link = file->chained;
	file->is_removed = true;
}

bool block_cache_remove(struct block_cache *cache, const char *name)
{
	char path[BLOCK_PATH_BYTES];
	struct block_file *file;
	lock_enter(&cache->lock);
	while ((file = block_cache_find(cache, name)) != NULL && file->is_leaving)
		lock_wait(&cache->lock, &cache->moved);
	if (file == NULL) {
		lock_leave(&cache->lock);
		return true;
	}
	const bool may_be_stored = !file->is_new || file->is_sent;
	block_cache_path(file, file->is_new, path);
	file->users++; /* it stays until the end of this call */
	if (file->is_new) {
		cache->bytes -= file->length;
		file->fd_users -= file->fd >= 0 ? 1 : 0;
	}
	file->is_new = false;
	unlink_node(file);
	block_cache_drop_all(file, true);
	lock_leave(&cache->lock);
	(void)cache->files->unlink(cache->files, path);
	block_file_close(file);
	return may_be_stored;
}

int block_file_write(struct block_file *file, struct span bytes, uint64_t offset, struct error *err)
{
	struct block_cache *const cache = file->cache;
	int fd;
	if (begin_change(file, &fd, err) != 0)
		return -1;
	ASSERT(offset <= file->length);
	int result = file_write_at(cache->files, fd, bytes, (off_t)offset, file->name, err);
	if (result != 0 && err->kind == ERROR_NO_SPACE) {
		block_room_relieve(cache);
		result = file_write_at(cache->files, fd, bytes, (off_t)offset, file->name, err);
	}
	if (result == 0 && offset + bytes.len > file->length)
		set_length(file, offset + bytes.len);
	block_room_give(file);
	if (result == 0)
		(void)block_room_make(cache, 0);
	return result;
}

/* Another thread may have removed the file. */
static int begin_change(struct block_file *file, int *out_fd, struct error *err)
{
	lock_enter(&file->cache->lock);
	const bool is_new = file->is_new;
	file->fd_users += is_new ? 1 : 0;
	*out_fd = file->fd;
	lock_leave(&file->cache->lock);
	return is_new ? 0
		      : error_set(err, ERROR_NOT_FOUND, "The file %s does not grow any more.",
				file->name);
}

static void set_length(struct block_file *file, uint64_t length)
{
	struct block_cache *const cache = file->cache;
	lock_enter(&cache->lock);
	if (file->is_new)
		cache->bytes += length - file->length;
	file->length = length;
	lock_leave(&cache->lock);
}

int block_file_truncate(struct block_file *file, uint64_t length, struct error *err)
{
	struct block_cache *const cache = file->cache;
	int fd;
	int result = 0;
	if (begin_change(file, &fd, err) != 0)
		return -1;
	if (length < file->length && cache->files->ftruncate(cache->files, fd, (off_t)length) != 0)
		result = error_set_errno(err, "cannot cut %s", file->name);
	else if (length < file->length)
		set_length(file, length);
	block_room_give(file);
	return result;
}

void block_file_sent(struct block_file *file)
{
	lock_enter(&file->cache->lock);
	file->is_sent = true;
	lock_leave(&file->cache->lock);
}

/* A name that cannot be changed costs no more than what lies under it after a restart. */
void block_file_stored(struct block_file *file)
{
	struct block_cache *const cache = file->cache;
	char from[BLOCK_PATH_BYTES];
	char to[BLOCK_PATH_BYTES];
	block_cache_path(file, true, from);
	block_cache_path(file, false, to);
	lock_enter(&cache->lock);
	const bool is_new = file->is_new;
	file->fd_users += is_new ? 1 : 0;
	lock_leave(&cache->lock);
	if (!is_new)
		return;
	(void)cache->files->rename(cache->files, from, to);
	lock_enter(&cache->lock);
	if (file->is_new) { /* else it was removed meanwhile */
		adopt_blocks(file);
		file->fd_users--;
	}
	lock_leave(&cache->lock);
	block_room_give(file);
}

static void adopt_blocks(struct block_file *file)
{
	struct block_cache *const cache = file->cache;
	cache->bytes -= file->length;
	file->is_new = false;
	for (uint32_t i = 0; (uint64_t)i * cache->block_bytes < file->length; i++) {
		struct block *const block = block_cache_block(file, i);
		cache->bytes += block_cache_length(file, i);
		block_cache_hold(block);
	}
}

struct block *block_cache_peek(const struct block_file *file, uint32_t number)
{
	return number < file->capacity ? file->blocks[number] : NULL;
}

struct block *block_cache_block(struct block_file *file, uint32_t number)
{
	struct block *block = block_cache_peek(file, number);
	if (block != NULL)
		return block;
	if (number >= file->capacity) {
		uint32_t capacity = file->capacity == 0 ? 16 : file->capacity;
		while (capacity <= number)
			capacity *= 2;
		file->blocks = memory_grow(file->blocks, capacity, sizeof(struct block *));
		memset(file->blocks + file->capacity, 0,
			(capacity - file->capacity) * sizeof(struct block *));
		file->capacity = capacity;
	}
	block = memory_new(sizeof(*block));
	block->file = file;
	block->number = number;
	file->blocks[number] = block;
	file->present++;
	return block;
}

void block_cache_hold(struct block *block)
{
	block->state = BLOCK_HELD;
	block_room_add(&block->file->cache->held, block);
}

void block_cache_drop(struct block *block)
{
	struct block_cache *const cache = block->file->cache;
	if (block->state == BLOCK_HELD) {
		block_room_take(&cache->held, block);
		cache->bytes -= block_cache_length(block->file, block->number);
	} else if (block->state == BLOCK_LOOSE) {
		block_room_take(&cache->loose, block);
	}
	block_cache_release(block->loose);
	block->loose = NULL;
	free(block->failure);
	block->failure = NULL;
	block->state = BLOCK_ABSENT;
	block_cache_settle_block(block);
}

void block_cache_settle_block(struct block *block)
{
	struct block_file *const file = block->file;
	if (block->state != BLOCK_ABSENT || block->pins > 0 || block->waits != NULL)
		return;
	file->blocks[block->number] = NULL;
	file->present--;
	free(block);
}

void block_cache_release(struct block_bytes *bytes)
{
	if (bytes != NULL && --bytes->uses == 0)
		free(bytes);
}

uint32_t block_cache_length(const struct block_file *file, uint32_t number)
{
	const uint32_t whole = file->cache->block_bytes;
	const uint64_t start = (uint64_t)number * whole;
	ASSERT(file->has_length && start < file->length);
	return file->length - start < whole ? (uint32_t)(file->length - start) : whole;
}

const char *block_file_name(const struct block_file *file)
{
	return file->name;
}

struct block_file *block_cache_whole(
	struct block_cache *cache, const char *name, uint64_t *out_bytes)
{
	lock_enter(&cache->lock);
	struct block_file *const file = block_cache_find(cache, name);
	bool is_here = file != NULL && file->has_length && !file->is_new;
	for (uint32_t i = 0; is_here && (uint64_t)i * cache->block_bytes < file->length; i++) {
		const struct block *const block = block_cache_peek(file, i);
		is_here = block != NULL && block->state == BLOCK_HELD;
	}
	if (is_here) {
		*out_bytes = file->length;
		file->users++;
	}
	lock_leave(&cache->lock);
	return is_here ? file : NULL;
}
