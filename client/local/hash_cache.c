/* In memory: an array of records and a hash table with open addressing over the hashes of their
 * paths. On disk: the same records, each with a checksum, so that a damaged record is dropped
 * alone. Saving reads the file again under a lock and keeps the records of other processes, writes
 * the newest HASH_CACHE_RECORDS_MAX, and replaces the file. A hit renews the time of use at most
 * once a day (TOUCH_S), so that hits alone seldom cause a save. */
#include "client/local/hash_cache.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/digest/xxh3.h"
#include "base/memory.h"
#include "base/thread/lock.h"
#include "client/local/folder_files.h"

/* A record as it lies in the file; little-endian, like every machine that this runs on. The header
 * of the file is a magic text of the same size. */
struct record {
	struct digest128 path; /* XXH3 of the absolute path */
	uint64_t size;
	int64_t mtime_ns;
	int64_t ctime_ns;
	uint64_t inode;
	uint64_t device;
	struct chunk_id hash;
	int64_t used_s;    /* time of last use; the oldest are dropped when there is no room */
	uint64_t checksum; /* XXH3-64 of all members above */
};
enum {
	RECORD_BYTES = 104,
	FILE_MAX_BYTES = (HASH_CACHE_RECORDS_MAX + 1) * RECORD_BYTES,
	MS_PER_SECOND = 1000,
	NS_PER_MS = 1000000,
	TOUCH_S = 24 * 60 * 60
};
_Static_assert(sizeof(struct record) == RECORD_BYTES, "the record has no padding");

static const char MAGIC[RECORD_BYTES] = "deltabucket file hashes, version 1\n";

struct hash_cache {
	struct lock lock;
	const struct file_ops *files;
	char *path; /* NULL: not saved */
	struct record *records;
	size_t count;
	uint32_t *slots;   /* the number of a record plus one; 0: free */
	size_t slot_count; /* a power of two, more than twice the records */
	bool changed;      /* there is something to save */
};

static void make_room(struct hash_cache *cache);
static uint32_t *slot_of(const struct hash_cache *cache, const struct digest128 *path);
static void read_records(struct hash_cache *cache);
static uint64_t checksum_of(const struct record *record);
static void add_record(struct hash_cache *cache, const struct record *record, bool replaces);
static void save(struct hash_cache *cache);
static void write_records(struct hash_cache *cache);
static int newest_first(const void *left, const void *right);
static struct digest128 path_key(const char *path);
static bool is_current(const struct record *record, const struct file_facts *facts);

char *hash_cache_default_path(void)
{
	const char *const cache_home = getenv("XDG_CACHE_HOME");
	const char *const home = getenv("HOME");
	const bool has_cache_home = cache_home != NULL && cache_home[0] == '/';
	if (!has_cache_home && (home == NULL || home[0] != '/'))
		return NULL;
	return folder_files_join(has_cache_home ? cache_home : home,
		has_cache_home ? "deltabucket/hashes" : ".cache/deltabucket/hashes");
}

struct hash_cache *hash_cache_open(const struct file_ops *files, const char *path)
{
	ASSERT(files != NULL);
	struct hash_cache *const cache = memory_new(sizeof(*cache));
	lock_init(&cache->lock, LOCK_HASH_CACHE);
	cache->files = files;
	cache->path = memory_copy_text(path);
	make_room(cache);
	if (path != NULL)
		read_records(cache);
	return cache;
}

void hash_cache_close(struct hash_cache *cache)
{
	if (cache == NULL)
		return;
	if (cache->changed && cache->path != NULL)
		save(cache);
	lock_release(&cache->lock);
	free(cache->slots);
	free(cache->records);
	free(cache->path);
	free(cache);
}

bool hash_cache_find(struct hash_cache *cache, const char *path, const struct file_facts *facts,
	struct chunk_id *out_hash)
{
	const struct digest128 key = path_key(path);
	const int64_t now_s = clock_wall_ms() / MS_PER_SECOND;
	lock_enter(&cache->lock);
	const uint32_t number = *slot_of(cache, &key);
	struct record *const record = number == 0 ? NULL : &cache->records[number - 1];
	const bool found = record != NULL && is_current(record, facts);
	if (found)
		*out_hash = record->hash;
	if (found && now_s - record->used_s > TOUCH_S) {
		record->used_s = now_s;
		record->checksum = checksum_of(record);
		cache->changed = true;
	}
	lock_leave(&cache->lock);
	return found;
}

void hash_cache_add(struct hash_cache *cache, const char *path, const struct file_facts *facts,
	const struct chunk_id *hash, int64_t read_ms)
{
	const int64_t youngest_ns =
		facts->mtime_ns > facts->ctime_ns ? facts->mtime_ns : facts->ctime_ns;
	if (youngest_ns / NS_PER_MS + HASH_CACHE_REST_MS > read_ms)
		return;
	struct record record = {
		.path = path_key(path),
		.size = facts->size,
		.mtime_ns = facts->mtime_ns,
		.ctime_ns = facts->ctime_ns,
		.inode = facts->inode,
		.device = facts->device,
		.hash = *hash,
		.used_s = read_ms / MS_PER_SECOND,
	};
	record.checksum = checksum_of(&record);
	lock_enter(&cache->lock);
	add_record(cache, &record, true);
	cache->changed = true;
	lock_leave(&cache->lock);
}

int hash_cache_hash(struct hash_cache *cache, const char *path, const struct stop *stop,
	struct chunk_id *out_hash, struct error *err)
{
	struct file_facts facts;
	struct file_chunks chunks;
	if (file_facts_read(path, &facts, err) != 0)
		return -1;
	if (hash_cache_find(cache, path, &facts, out_hash))
		return 0;
	const int64_t read_ms = clock_wall_ms();
	if (file_chunks_read(path, stop, &chunks, err) != 0)
		return -1;
	hash_cache_add(cache, path, &chunks.facts, &chunks.hash, read_ms);
	*out_hash = chunks.hash;
	file_chunks_release(&chunks);
	return 0;
}

/* Makes room for one more record; half of the slots stay free. */
static void make_room(struct hash_cache *cache)
{
	if (2 * (cache->count + 1) < cache->slot_count)
		return;
	free(cache->slots);
	cache->slot_count = cache->slot_count == 0 ? 1024 : 2 * cache->slot_count;
	cache->slots = memory_new_array(cache->slot_count, sizeof(*cache->slots));
	cache->records = memory_grow(cache->records, cache->slot_count, sizeof(*cache->records));
	for (size_t i = 0; i < cache->count; i++)
		*slot_of(cache, &cache->records[i].path) = (uint32_t)i + 1;
	ASSERT(2 * (cache->count + 1) < cache->slot_count);
}

static uint32_t *slot_of(const struct hash_cache *cache, const struct digest128 *path)
{
	uint64_t at;
	memcpy(&at, path->bytes, sizeof(at));
	for (;; at++) {
		uint32_t *const slot = &cache->slots[at & (cache->slot_count - 1)];
		if (*slot == 0 || digest128_equal(&cache->records[*slot - 1].path, path))
			return slot;
	}
}

static void read_records(struct hash_cache *cache)
{
	struct buffer bytes;
	struct error ignored = {0};
	buffer_init(&bytes, FILE_MAX_BYTES);
	if (file_read_all(cache->path, &bytes, &ignored) == 0 && bytes.len >= RECORD_BYTES &&
		memcmp(bytes.data, MAGIC, RECORD_BYTES) == 0) {
		for (size_t at = RECORD_BYTES; at + RECORD_BYTES <= bytes.len; at += RECORD_BYTES) {
			struct record record;
			memcpy(&record, bytes.data + at, RECORD_BYTES);
			if (record.checksum == checksum_of(&record))
				add_record(cache, &record, false);
		}
	}
	buffer_release(&bytes);
}

static uint64_t checksum_of(const struct record *record)
{
	return xxh3_64(span_of(record, offsetof(struct record, checksum)));
}

/* Adds the record. One with the same path is replaced if `replaces`, otherwise it stays. */
static void add_record(struct hash_cache *cache, const struct record *record, bool replaces)
{
	make_room(cache);
	uint32_t *const slot = slot_of(cache, &record->path);
	if (*slot == 0) {
		cache->records[cache->count] = *record;
		*slot = (uint32_t)++cache->count;
	} else if (replaces) {
		cache->records[*slot - 1] = *record;
	}
}

/* The lock is on a file beside the cache, because the cache file itself is replaced. */
static void save(struct hash_cache *cache)
{
	struct error ignored = {0};
	char path[4096];
	if (file_make_parent(cache->files, cache->path, 0755, &ignored) != 0 ||
		strlen(cache->path) + 6 > sizeof(path))
		return;
	stpcpy(stpcpy(path, cache->path), ".lock");
	const int fd = cache->files->open(cache->files, path, O_RDWR | O_CREAT, 0600);
	if (fd < 0)
		return;
	if (flock(fd, LOCK_EX) == 0) {
		read_records(cache);
		write_records(cache);
	}
	file_close_locked(fd);
}

static void write_records(struct hash_cache *cache)
{
	struct buffer bytes;
	struct error ignored = {0};
	buffer_init(&bytes, FILE_MAX_BYTES);
	qsort(cache->records, cache->count, sizeof(*cache->records), newest_first);
	const size_t kept =
		cache->count < HASH_CACHE_RECORDS_MAX ? cache->count : HASH_CACHE_RECORDS_MAX;
	buffer_add(&bytes, MAGIC, RECORD_BYTES);
	buffer_add(&bytes, cache->records, kept * RECORD_BYTES);
	if (!buffer_failed(&bytes))
		file_place(cache->files, cache->path, buffer_span(&bytes), 0600, &ignored);
	buffer_release(&bytes);
}

static int newest_first(const void *left, const void *right)
{
	const struct record *const a = left;
	const struct record *const b = right;
	return a->used_s != b->used_s ? (a->used_s > b->used_s ? -1 : 1)
				      : memcmp(a->path.bytes, b->path.bytes, sizeof(a->path.bytes));
}

static struct digest128 path_key(const char *path)
{
	char *const whole = realpath(path, NULL);
	const struct digest128 key = xxh3_128(span_text(whole != NULL ? whole : path));
	free(whole);
	return key;
}

static bool is_current(const struct record *record, const struct file_facts *facts)
{
	return record->size == facts->size && record->mtime_ns == facts->mtime_ns &&
		record->ctime_ns == facts->ctime_ns && record->inode == facts->inode &&
		record->device == facts->device;
}
