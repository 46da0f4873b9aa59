#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "storage/far/block_cache_internal.h"

enum { FAILED_MS = 1000, LOOSE_MAX = 16, TRIES = 2 };

struct fetching {
	struct block *block;
	struct block_file *file;
	struct block_bytes *bytes;
	bool is_kept; /* on the disk */
	struct error err;
};

static struct block *take_first(struct block_cache *cache);
static void fetch(struct block *block);
static int get_bytes(struct fetching *fetching);
static int get_once(struct fetching *fetching);
static int learn_length(struct fetching *fetching);
static void change_length(struct block_file *file, uint64_t length);
static void keep(struct fetching *fetching);
static void settle(struct fetching *fetching, int result);
static void place(struct fetching *fetching);
static void set_failed(struct block *block, const struct error *why);
static void set_loose(struct block *block, struct block_bytes *bytes);

void block_fetch_queue(struct block *block, bool is_urgent)
{
	struct block_cache *const cache = block->file->cache;
	ASSERT(block->state == BLOCK_ABSENT || block->state == BLOCK_FAILED);
	free(block->failure);
	block->failure = NULL;
	block->state = BLOCK_QUEUED;
	if (is_urgent || cache->first == NULL) {
		block->behind = cache->first;
		cache->first = block;
	} else {
		cache->last->behind = block;
		block->behind = NULL;
	}
	if (block->behind == NULL)
		cache->last = block;
	cache->queue_length++;
	lock_signal(&cache->queued);
}

void *block_fetch_run(void *argument)
{
	struct block_cache *const cache = argument;
	lock_enter(&cache->lock);
	for (;;) {
		while (cache->first == NULL && !cache->is_ending)
			lock_wait(&cache->lock, &cache->queued);
		if (cache->is_ending)
			break;
		struct block *const block = take_first(cache);
		block->state = BLOCK_FETCHING;
		lock_leave(&cache->lock);
		fetch(block);
		lock_enter(&cache->lock);
	}
	lock_leave(&cache->lock);
	return NULL;
}

static struct block *take_first(struct block_cache *cache)
{
	struct block *const block = cache->first;
	cache->first = block->behind;
	block->behind = NULL;
	cache->queue_length--;
	return block;
}

static void fetch(struct block *block)
{
	struct fetching fetching = {.block = block, .file = block->file};
	const int result = get_bytes(&fetching);
	if (result == 0)
		keep(&fetching);
	settle(&fetching, result);
}

/* A wrong length is asked for once more. */
static int get_bytes(struct fetching *fetching)
{
	int result = -1;
	for (int i = 0; i < TRIES && result != 0; i++) {
		result = get_once(fetching);
		if (result != 0 && fetching->err.kind != ERROR_CORRUPT)
			break;
	}
	return result;
}

static int get_once(struct fetching *fetching)
{
	struct block_file *const file = fetching->file;
	struct block_cache *const cache = file->cache;
	const uint64_t start = (uint64_t)fetching->block->number * cache->block_bytes;
	uint64_t total;
	if (learn_length(fetching) != 0)
		return -1;
	lock_enter(&cache->lock);
	const uint64_t length = file->length;
	const bool is_inside = start < length;
	const uint32_t size = is_inside ? block_cache_length(file, fetching->block->number) : 0;
	lock_leave(&cache->lock);
	if (!is_inside)
		return error_set(&fetching->err, ERROR_CORRUPT, "The file %s ends inside a record.",
			file->name);
	free(fetching->bytes);
	fetching->bytes = memory_grow(NULL, 1, sizeof(*fetching->bytes) + size);
	fetching->bytes->uses = 0;
	fetching->bytes->len = size;
	const struct iovec into = {.iov_base = fetching->bytes->data, .iov_len = size};
	const int result =
		cache->source->read(cache->source, file->name, start, into, &total, &fetching->err);
	if (total == length || total == UINT64_MAX)
		return result;
	change_length(file, total);
	return error_set(&fetching->err, ERROR_CORRUPT,
		"The file %s has another length than was told.", file->name);
}

static int learn_length(struct fetching *fetching)
{
	uint64_t ignored;
	return block_file_size(fetching->file, &ignored, &fetching->err);
}

static void change_length(struct block_file *file, uint64_t length)
{
	lock_enter(&file->cache->lock);
	block_cache_drop_all(file, true);
	file->length = length;
	file->has_length = true;
	file->is_measured = true;
	lock_leave(&file->cache->lock);
}

static void keep(struct fetching *fetching)
{
	struct block_file *const file = fetching->file;
	struct block_cache *const cache = file->cache;
	const struct span bytes = span_of(fetching->bytes->data, fetching->bytes->len);
	struct error ignored;
	int fd;
	if (fetching->block->is_unkept || !block_room_make(cache, bytes.len))
		return;
	if (block_room_open(file, true, &fd, &ignored) == 0) {
		const off_t offset = (off_t)fetching->block->number * cache->block_bytes;
		fetching->is_kept =
			file_write_at(cache->files, fd, bytes, offset, file->name, &ignored) == 0;
		block_room_give(file);
	}
	if (fetching->is_kept)
		return;
	lock_enter(&cache->lock);
	cache->bytes -= bytes.len;
	lock_leave(&cache->lock);
	if (ignored.kind == ERROR_NO_SPACE)
		block_room_relieve(cache);
}

static void settle(struct fetching *fetching, int result)
{
	struct block *const block = fetching->block;
	struct block_file *const file = fetching->file;
	struct block_cache *const cache = file->cache;
	struct block_wait *over = NULL;
	lock_enter(&cache->lock);
	if (result == 0)
		place(fetching);
	else
		set_failed(block, &fetching->err);
	block->is_stale = false;
	block_read_end_waits(block, &over); /* they ask again for a block that is still absent */
	if (file->users == 0 && block->pins == 0 &&
		(block->state == BLOCK_LOOSE || block->state == BLOCK_FAILED))
		block_cache_drop(block);
	else
		block_cache_settle_block(block);
	lock_broadcast(&cache->moved);
	block_cache_settle_file(file);
	lock_leave(&cache->lock);
	free(fetching->bytes);
	block_read_wake(over);
}

/* Bytes that were forgotten meanwhile, or of a length that is not the file's any more, are of no
 * use. Nothing of a removed file is kept on the disk. */
static void place(struct fetching *fetching)
{
	struct block *const block = fetching->block;
	struct block_file *const file = fetching->file;
	const uint64_t start = (uint64_t)block->number * file->cache->block_bytes;
	const bool is_right = !block->is_stale && file->has_length && start < file->length &&
		fetching->bytes->len == block_cache_length(file, block->number);
	const bool is_kept = fetching->is_kept && is_right && !file->is_removed;
	if (fetching->is_kept && !is_kept)
		file->cache->bytes -= fetching->bytes->len;
	block->state = BLOCK_ABSENT;
	if (is_kept) {
		block_cache_hold(block);
	} else if (is_right) {
		set_loose(block, fetching->bytes);
		fetching->bytes = NULL;
	}
}

static void set_failed(struct block *block, const struct error *why)
{
	block->state = BLOCK_FAILED;
	block->failure = memory_copy(why, sizeof(*why));
	block->failed_until_ms = clock_monotonic_ms() + FAILED_MS;
}

/* The oldest loose ones make room. */
static void set_loose(struct block *block, struct block_bytes *bytes)
{
	struct block_cache *const cache = block->file->cache;
	while (cache->loose.count >= LOOSE_MAX)
		block_cache_drop(cache->loose.oldest);
	bytes->uses = 1;
	block->loose = bytes;
	block->state = BLOCK_LOOSE;
	block_room_add(&cache->loose, block);
}
