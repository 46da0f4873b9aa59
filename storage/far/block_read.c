#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "storage/far/block_cache_internal.h"

enum { PARTS_MAX = 128, TRIES = 3, AHEAD_MAX = 4, QUEUE_MAX = 64 };

struct reading { /* of bytes that lie in one block */
	struct block_file *file;
	uint32_t number;
	uint32_t start; /* in the block */
	struct iovec parts[PARTS_MAX];
	int count;
};

static uint64_t total_of(const struct iovec *parts, int count);
static int read_new(struct block_file *file, const struct iovec *parts, int count, uint64_t offset,
	struct error *err);
static void cut(struct reading *reading, const struct iovec *parts, int count, uint64_t from,
	uint64_t length);
static int read_piece(struct reading *reading, uint64_t end, struct error *err);
static struct block *pin(struct reading *reading, struct error *err);
static int check_end(const struct block_file *file, uint64_t end, struct error *err);
static int read_held(const struct reading *reading, struct error *err);
static int preadv_whole(const struct block_file *file, int fd, const struct iovec *parts, int count,
	uint64_t offset, struct error *err);
static void copy_loose(const struct reading *reading, const struct block_bytes *bytes);
static void unpin(struct block *block, bool is_bad, bool is_last_try);
static void doubt_length(struct block_file *file, uint64_t end);
static bool is_failing(const struct block *block);
static bool look_near(
	struct block_file *file, uint64_t offset, uint64_t length, struct block **out_first);
static void note_read(struct block_file *file, uint32_t number);
static void ask_ahead(struct block_file *file, uint32_t number);

int block_file_read(struct block_file *file, const struct iovec *parts, int count, uint64_t offset,
	struct error *err)
{
	struct block_cache *const cache = file->cache;
	const uint64_t total = total_of(parts, count);
	uint64_t done = 0;
	int result = 0;
	lock_enter(&cache->lock);
	const bool is_new = file->is_new;
	file->fd_users += is_new ? 1 : 0;
	doubt_length(file, offset + total);
	lock_leave(&cache->lock);
	if (is_new) {
		result = read_new(file, parts, count, offset, err);
		block_room_give(file);
		return result;
	}
	while (done < total && result == 0) {
		struct reading reading = {.file = file};
		const uint64_t at = offset + done;
		reading.number = (uint32_t)(at / cache->block_bytes);
		reading.start = (uint32_t)(at % cache->block_bytes);
		const uint64_t rest = cache->block_bytes - reading.start;
		const uint64_t length = total - done < rest ? total - done : rest;
		cut(&reading, parts, count, done, length);
		result = read_piece(&reading, offset + total, err);
		done += length;
	}
	return result;
}

static uint64_t total_of(const struct iovec *parts, int count)
{
	uint64_t total = 0;
	for (int i = 0; i < count; i++)
		total += parts[i].iov_len;
	return total;
}

static int read_new(struct block_file *file, const struct iovec *parts, int count, uint64_t offset,
	struct error *err)
{
	lock_enter(&file->cache->lock);
	const int result = check_end(file, offset + total_of(parts, count), err);
	lock_leave(&file->cache->lock);
	return result != 0 ? -1 : preadv_whole(file, file->fd, parts, count, offset, err);
}

/* The parts of the bytes [from, from + length) of all. */
static void cut(struct reading *reading, const struct iovec *parts, int count, uint64_t from,
	uint64_t length)
{
	for (int i = 0; i < count && length > 0; i++) {
		const uint64_t part = parts[i].iov_len;
		if (from >= part) {
			from -= part;
			continue;
		}
		const uint64_t taken = part - from < length ? part - from : length;
		ASSERT(reading->count < PARTS_MAX);
		reading->parts[reading->count++] = (struct iovec){
			.iov_base = (uint8_t *)parts[i].iov_base + from, .iov_len = (size_t)taken};
		length -= taken;
		from = 0;
	}
}

/* What the local disk does not give is fetched again, at last without the disk. */
static int read_piece(struct reading *reading, uint64_t end, struct error *err)
{
	struct block_cache *const cache = reading->file->cache;
	for (int i = 0; i < TRIES; i++) {
		lock_enter(&cache->lock);
		struct block *const block = pin(reading, err);
		int result = block == NULL ? -1 : check_end(reading->file, end, err);
		struct block_bytes *const bytes = result == 0 ? block->loose : NULL;
		if (bytes != NULL)
			bytes->uses++;
		lock_leave(&cache->lock);
		if (block == NULL)
			return -1;
		bool is_bad = false;
		if (bytes != NULL)
			copy_loose(reading, bytes);
		else if (result == 0)
			is_bad = read_held(reading, err) != 0;
		lock_enter(&cache->lock);
		block_cache_release(bytes);
		unpin(block, is_bad, i + 2 == TRIES);
		lock_leave(&cache->lock);
		if (!is_bad)
			return result;
	}
	return -1;
}

/* Waits until the block is here. NULL: it cannot be fetched. */
static struct block *pin(struct reading *reading, struct error *err)
{
	struct block_cache *const cache = reading->file->cache;
	struct block *const block = block_cache_block(reading->file, reading->number);
	note_read(reading->file, reading->number);
	block->pins++;
	for (;;) {
		if (block->state == BLOCK_HELD || block->state == BLOCK_LOOSE) {
			struct block_list *const list =
				block->state == BLOCK_HELD ? &cache->held : &cache->loose;
			block_room_take(list, block);
			block_room_add(list, block);
			ask_ahead(reading->file, reading->number);
			return block;
		}
		if (is_failing(block)) {
			*err = *block->failure;
			block->pins--;
			return NULL;
		}
		if (block->state == BLOCK_FAILED || block->state == BLOCK_ABSENT) {
			block_fetch_queue(block, true);
			ask_ahead(reading->file, reading->number);
		}
		lock_wait(&cache->lock, &cache->moved);
	}
}

static bool is_failing(const struct block *block)
{
	return block->state == BLOCK_FAILED && clock_monotonic_ms() < block->failed_until_ms;
}

static int check_end(const struct block_file *file, uint64_t end, struct error *err)
{
	return !file->has_length || end <= file->length
		? 0
		: error_set(err, ERROR_CORRUPT, "The file %s ends inside a record.", file->name);
}

static int read_held(const struct reading *reading, struct error *err)
{
	struct block_file *const file = reading->file;
	int fd;
	if (block_room_open(file, false, &fd, err) != 0)
		return -1;
	const uint64_t offset =
		(uint64_t)reading->number * file->cache->block_bytes + reading->start;
	const int result = preadv_whole(file, fd, reading->parts, reading->count, offset, err);
	block_room_give(file);
	return result;
}

/* One call where the system gives all at once. */
static int preadv_whole(const struct block_file *file, int fd, const struct iovec *parts, int count,
	uint64_t offset, struct error *err)
{
	const struct file_ops *const files = file->cache->files;
	const uint64_t total = total_of(parts, count);
	const ssize_t got = files->preadv(files, fd, parts, count, (off_t)offset);
	if (got >= 0 && (uint64_t)got == total)
		return 0;
	for (int i = 0; i < count; i++) {
		if (parts[i].iov_len > 0 &&
			file_read_at(files, fd, parts[i], (off_t)offset, file->name, err) != 0)
			return -1;
		offset += parts[i].iov_len;
	}
	return 0;
}

static void copy_loose(const struct reading *reading, const struct block_bytes *bytes)
{
	const uint8_t *at = bytes->data + reading->start;
	for (int i = 0; i < reading->count; i++) {
		ASSERT((size_t)(at - bytes->data) + reading->parts[i].iov_len <= bytes->len);
		memcpy(reading->parts[i].iov_base, at, reading->parts[i].iov_len);
		at += reading->parts[i].iov_len;
	}
}

static void unpin(struct block *block, bool is_bad, bool is_last_try)
{
	struct block_file *const file = block->file;
	block->is_unkept = block->is_unkept || (is_bad && is_last_try);
	block->pins--;
	block_cache_settle_block(block);
	if (is_bad) /* its local file may be gone */
		block_cache_drop_all(file, true);
	block_cache_settle_file(file);
}

/* The length of a file that the last process left may be wrong: it is asked for before a read fails
 * because of it. */
static void doubt_length(struct block_file *file, uint64_t end)
{
	if (!file->has_length || file->is_measured || end <= file->length)
		return;
	block_cache_drop_all(file, true);
	file->is_measured = true;
	file->has_length = false;
}

int block_file_size(struct block_file *file, uint64_t *out_bytes, struct error *err)
{
	struct block_cache *const cache = file->cache;
	uint64_t bytes;
	lock_enter(&cache->lock);
	bool is_known = file->has_length;
	*out_bytes = file->length;
	lock_leave(&cache->lock);
	if (is_known)
		return 0;
	if (cache->source->size(cache->source, file->name, &bytes, err) != 0)
		return -1;
	lock_enter(&cache->lock);
	if (!file->has_length) {
		file->length = bytes;
		file->has_length = true;
		file->is_measured = true;
	}
	*out_bytes = file->length;
	lock_leave(&cache->lock);
	return 0;
}

bool block_file_is_near(struct block_file *file, uint64_t offset, uint64_t length)
{
	struct block *first;
	lock_enter(&file->cache->lock);
	doubt_length(file, offset + length);
	const bool is_near = look_near(file, offset, length, &first);
	lock_leave(&file->cache->lock);
	return is_near;
}

/* Whether a read gets its bytes, or a failure, without a wait. *out_first: what it would wait for;
 * NULL: a block of which nothing is known. */
static bool look_near(
	struct block_file *file, uint64_t offset, uint64_t length, struct block **out_first)
{
	const uint32_t size = file->cache->block_bytes;
	*out_first = NULL;
	if (length == 0 || file->is_new || (file->has_length && offset + length > file->length))
		return true;
	for (uint64_t i = offset / size; i <= (offset + length - 1) / size; i++) {
		struct block *const block = block_cache_peek(file, (uint32_t)i);
		*out_first = block;
		if (block == NULL)
			return false;
		if (is_failing(block))
			return true;
		if (block->state != BLOCK_HELD && block->state != BLOCK_LOOSE)
			return false;
	}
	return true;
}

void block_file_fetch(
	struct block_file *file, uint64_t offset, uint64_t length, block_wake_fn *wake, void *owner)
{
	struct block_cache *const cache = file->cache;
	struct block_wait *const wait = memory_new(sizeof(*wait));
	struct block_wait *over = NULL;
	*wait = (struct block_wait){
		.file = file, .offset = offset, .length = length, .wake = wake, .owner = owner};
	lock_enter(&cache->lock);
	doubt_length(file, offset + length);
	if (length > 0)
		note_read(file, (uint32_t)((offset + length - 1) / cache->block_bytes));
	block_read_begin_wait(wait, &over);
	if (over == NULL)
		ask_ahead(file, (uint32_t)((offset + length - 1) / cache->block_bytes));
	lock_leave(&cache->lock);
	block_read_wake(over);
}

/* Asks for all blocks that are not here, and waits for the first of them. */
void block_read_begin_wait(struct block_wait *wait, struct block_wait **over)
{
	struct block_file *const file = wait->file;
	const uint32_t size = file->cache->block_bytes;
	struct block *first;
	if (look_near(file, wait->offset, wait->length, &first)) {
		wait->next = *over;
		*over = wait;
		return;
	}
	first = NULL;
	for (uint64_t i = wait->offset / size; i <= (wait->offset + wait->length - 1) / size; i++) {
		struct block *const block = block_cache_block(file, (uint32_t)i);
		if (block->state == BLOCK_HELD || block->state == BLOCK_LOOSE)
			continue;
		first = first == NULL ? block : first;
		if (block->state == BLOCK_ABSENT || block->state == BLOCK_FAILED)
			block_fetch_queue(block, true);
	}
	ASSERT(first != NULL);
	wait->next = first->waits;
	first->waits = wait;
}

void block_read_end_waits(struct block *block, struct block_wait **out)
{
	struct block_wait *waits = block->waits;
	block->waits = NULL;
	while (waits != NULL) {
		struct block_wait *const wait = waits;
		waits = wait->next;
		wait->next = NULL;
		block_read_begin_wait(wait, out);
	}
}

void block_read_wake(struct block_wait *over)
{
	while (over != NULL) {
		struct block_wait *const wait = over;
		over = wait->next;
		wait->wake(wait->owner);
		free(wait);
	}
}

/* Readers that are in the middle of such a block find its bytes wrong themselves. Its place on the
 * disk is written again by the next fetch. */
void block_file_forget(struct block_file *file, uint64_t offset, uint64_t length)
{
	struct block_cache *const cache = file->cache;
	lock_enter(&cache->lock);
	for (uint64_t i = offset / cache->block_bytes;
		!file->is_new && i * cache->block_bytes < offset + length; i++) {
		struct block *const block = block_cache_peek(file, (uint32_t)i);
		if (block == NULL)
			continue;
		if (block->state == BLOCK_HELD || block->state == BLOCK_LOOSE)
			block_cache_drop(block);
		else if (block->state == BLOCK_FETCHING)
			block->is_stale = true;
	}
	lock_leave(&cache->lock);
}

/* Several readers of one file look like one that jumps; then nothing is read ahead. */
static void note_read(struct block_file *file, uint32_t number)
{
	if (number == file->last)
		return;
	file->run = number == file->last + 1 && file->last != UINT32_MAX ? file->run + 1 : 0;
	file->last = number;
}

static void ask_ahead(struct block_file *file, uint32_t number)
{
	struct block_cache *const cache = file->cache;
	const unsigned ahead = 2 * file->run < AHEAD_MAX ? 2 * file->run : AHEAD_MAX;
	for (uint32_t i = number + 1; i <= number + ahead; i++) {
		if (!file->has_length || (uint64_t)i * cache->block_bytes >= file->length ||
			cache->queue_length >= QUEUE_MAX)
			return;
		struct block *const block = block_cache_block(file, i);
		if (block->state == BLOCK_ABSENT)
			block_fetch_queue(block, false);
	}
}
