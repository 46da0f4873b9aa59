/* Chunks are appended in any order, and sorted only when a question needs it (`settled`). Sorting
 * also drops chunks that overlap an earlier one: a copy is harmless, but a different chunk sets
 * `torn`, because the file then holds the bytes of one of the two. The journal is append-only with
 * records of a fixed size, so that the end of a torn write can be cut off. It needs no sync: a
 * record that does not match the file's bytes is dropped when the journal is read. */
#include "client/local/file_map.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "chunker/chunk_hash.h"
#include "chunker/merkle.h"

enum { RECORD_BYTES = 48, JOURNAL_MAX_BYTES = 1 << 30 };

static const char MAGIC[8] = "dbchunk1";

static int open_journal(struct file_map *map, const char *path, int fd, struct error *err);
static void put_header(struct buffer *out, const struct file_map *map);
static void take_records(struct file_map *map, struct span records, int fd);
static struct map_chunk get_record(const uint8_t *bytes);
static bool is_in_place(
	const struct file_map *map, const struct map_chunk *chunk, int fd, uint8_t *scratch);
static void keep(struct file_map *map, const struct map_chunk *chunk);
static int append(struct file_map *map, struct span bytes, const char *path, struct error *err);
static void put_record(struct buffer *out, const struct map_chunk *chunk);
static void settle(struct file_map *map);
static int by_offset(const void *left, const void *right);
static bool is_same(const struct map_chunk *a, const struct map_chunk *b);
static bool claims_hold(const struct file_map *map);

int file_map_open(struct file_map *map, const struct file_ops *files,
	const struct file_map_params *params, struct error *err)
{
	ASSERT(params->journal_path == NULL || params->fd >= 0);
	*map = (struct file_map){.files = files,
		.size = params->size,
		.hash = params->hash,
		.journal_fd = -1,
		.settled = true};
	if (params->journal_path == NULL ||
		open_journal(map, params->journal_path, params->fd, err) == 0)
		return 0;
	file_map_close(map);
	return -1;
}

void file_map_close(struct file_map *map)
{
	if (map->journal_fd >= 0)
		close(map->journal_fd);
	free(map->chunks);
	free(map->claims);
	*map = (struct file_map){.journal_fd = -1};
}

int file_map_add(
	struct file_map *map, const struct map_chunk *chunks, size_t count, struct error *err)
{
	struct buffer records;
	buffer_init(&records, count * RECORD_BYTES);
	for (size_t i = 0; i < count; i++) {
		keep(map, &chunks[i]);
		put_record(&records, &chunks[i]);
	}
	const int result = map->journal_fd < 0
		? 0
		: append(map, buffer_span(&records), "the journal of a download", err);
	buffer_release(&records);
	return result;
}

void file_map_claim(struct file_map *map, const struct map_chunk *chunk)
{
	map->claims = memory_make_room(
		map->claims, map->claim_count, &map->claim_capacity, sizeof(*map->claims));
	map->claims[map->claim_count++] = *chunk;
}

void file_map_restart(struct file_map *map)
{
	map->count = 0;
	map->claim_count = 0;
	map->settled = true;
	map->torn = false;
	/* Records that cannot be cut off do no harm: they are checked before they are used. */
	if (map->journal_fd >= 0 &&
		map->files->ftruncate(map->files, map->journal_fd, RECORD_BYTES) == 0)
		map->journal_bytes = RECORD_BYTES;
}

bool file_map_gap(struct file_map *map, uint64_t from, struct map_gap *out)
{
	settle(map);
	size_t low = 0;
	size_t high = map->count;
	while (low < high) { /* finds the first chunk that ends after `from` */
		const size_t middle = (low + high) / 2;
		if (map->chunks[middle].offset + map->chunks[middle].size <= from)
			low = middle + 1;
		else
			high = middle;
	}
	uint64_t at = from;
	for (; low < map->count && map->chunks[low].offset <= at; low++)
		at = map->chunks[low].offset + map->chunks[low].size;
	*out = (struct map_gap){
		.from = at, .to = low < map->count ? map->chunks[low].offset : map->size};
	return at < map->size;
}

uint64_t file_map_bytes(struct file_map *map)
{
	uint64_t bytes = 0;
	settle(map);
	for (size_t i = 0; i < map->count; i++)
		bytes += map->chunks[i].size;
	return bytes;
}

bool file_map_is_whole(struct file_map *map)
{
	struct map_gap gap;
	if (file_map_gap(map, 0, &gap) || map->torn || !claims_hold(map))
		return false;
	struct merkle *const merkle = memory_new(sizeof(*merkle));
	merkle_init(merkle);
	for (size_t i = 0; i < map->count; i++) {
		const struct chunk_entry entry = {
			.id = map->chunks[i].id, .size = map->chunks[i].size};
		merkle_add(merkle, &entry);
	}
	const struct chunk_id hash = merkle_file(merkle);
	free(merkle);
	return chunk_id_equal(&hash, &map->hash);
}

/* A kill can leave half a record at the end. It is cut off, because it would shift the records that
 * follow. */
static int open_journal(struct file_map *map, const char *path, int fd, struct error *err)
{
	struct buffer bytes;
	struct buffer header;
	map->journal_fd = map->files->open(map->files, path, O_RDWR | O_CREAT, 0644);
	if (map->journal_fd < 0)
		return error_set_errno(err, "opening %s", path);
	buffer_init(&bytes, JOURNAL_MAX_BYTES);
	buffer_init(&header, RECORD_BYTES);
	put_header(&header, map);
	struct error ignored = {0};
	const bool ours = file_read_all(path, &bytes, &ignored) == 0 &&
		span_starts(buffer_span(&bytes), buffer_span(&header));
	if (ours) {
		take_records(map, span_slice(buffer_span(&bytes), RECORD_BYTES, bytes.len), fd);
		map->journal_bytes = bytes.len - bytes.len % RECORD_BYTES;
	}
	int result = map->files->ftruncate(map->files, map->journal_fd, (off_t)map->journal_bytes);
	if (result != 0)
		error_set_errno(err, "cutting %s", path);
	else if (!ours)
		result = append(map, buffer_span(&header), path, err);
	buffer_release(&header);
	buffer_release(&bytes);
	return result;
}

static void put_header(struct buffer *out, const struct file_map *map)
{
	buffer_add(out, MAGIC, sizeof(MAGIC));
	buffer_add(out, &map->size, sizeof(map->size));
	buffer_add(out, map->hash.bytes, sizeof(map->hash.bytes));
}

/* Keeps the chunks of the journal that are in place. */
static void take_records(struct file_map *map, struct span records, int fd)
{
	uint8_t *const scratch = memory_new(CHUNK_MAX_BYTES);
	for (size_t at = 0; at + RECORD_BYTES <= records.len; at += RECORD_BYTES) {
		const struct map_chunk chunk = get_record(records.data + at);
		if (is_in_place(map, &chunk, fd, scratch))
			keep(map, &chunk);
	}
	free(scratch);
}

static struct map_chunk get_record(const uint8_t *bytes)
{
	struct map_chunk chunk;
	memcpy(&chunk.offset, bytes, sizeof(chunk.offset));
	memcpy(&chunk.size, bytes + 8, sizeof(chunk.size));
	memcpy(chunk.id.bytes, bytes + 16, sizeof(chunk.id.bytes));
	return chunk;
}

static bool is_in_place(
	const struct file_map *map, const struct map_chunk *chunk, int fd, uint8_t *scratch)
{
	struct error ignored = {0};
	if (chunk->size == 0 || chunk->size > CHUNK_MAX_BYTES || chunk->offset > map->size ||
		map->size - chunk->offset < chunk->size)
		return false;
	const struct iovec content = {.iov_base = scratch, .iov_len = chunk->size};
	if (file_read_at(
		    map->files, fd, content, (off_t)chunk->offset, "the part file", &ignored) != 0)
		return false;
	const struct chunk_id id = chunk_hash(span_of(scratch, chunk->size));
	return chunk_id_equal(&id, &chunk->id);
}

static void keep(struct file_map *map, const struct map_chunk *chunk)
{
	ASSERT(chunk->offset <= map->size && chunk->size <= map->size - chunk->offset);
	map->chunks =
		memory_make_room(map->chunks, map->count, &map->capacity, sizeof(*map->chunks));
	const struct map_chunk *const last = map->count == 0 ? NULL : &map->chunks[map->count - 1];
	map->settled = map->settled && (last == NULL || last->offset + last->size <= chunk->offset);
	map->chunks[map->count++] = *chunk;
}

static int append(struct file_map *map, struct span bytes, const char *path, struct error *err)
{
	if (file_write_at(
		    map->files, map->journal_fd, bytes, (off_t)map->journal_bytes, path, err) != 0)
		return -1;
	map->journal_bytes += bytes.len;
	return 0;
}

/* The header (magic, file size, hash) and the records (offset, size, zeros, id) have one size. */
static void put_record(struct buffer *out, const struct map_chunk *chunk)
{
	const uint32_t zero = 0;
	buffer_add(out, &chunk->offset, sizeof(chunk->offset));
	buffer_add(out, &chunk->size, sizeof(chunk->size));
	buffer_add(out, &zero, sizeof(zero));
	buffer_add(out, chunk->id.bytes, sizeof(chunk->id.bytes));
}

/* Sorts the chunks; of chunks that overlap, the first stays. */
static void settle(struct file_map *map)
{
	if (map->settled)
		return;
	map->settled = true;
	qsort(map->chunks, map->count, sizeof(*map->chunks), by_offset);
	size_t kept = 0;
	uint64_t end = 0;
	for (size_t i = 0; i < map->count; i++) {
		if (map->chunks[i].offset < end) {
			ASSERT(kept > 0);
			map->torn = map->torn || !is_same(&map->chunks[i], &map->chunks[kept - 1]);
			continue;
		}
		end = map->chunks[i].offset + map->chunks[i].size;
		map->chunks[kept++] = map->chunks[i];
	}
	map->count = kept;
}

static int by_offset(const void *left, const void *right)
{
	const struct map_chunk *const a = left;
	const struct map_chunk *const b = right;
	return a->offset < b->offset ? -1 : a->offset > b->offset ? 1 : 0;
}

static bool is_same(const struct map_chunk *a, const struct map_chunk *b)
{
	return a->offset == b->offset && a->size == b->size && chunk_id_equal(&a->id, &b->id);
}

static bool claims_hold(const struct file_map *map)
{
	ASSERT(map->settled);
	for (size_t i = 0; i < map->claim_count; i++) {
		const struct map_chunk *const found = bsearch(
			&map->claims[i], map->chunks, map->count, sizeof(*map->chunks), by_offset);
		if (found == NULL || !is_same(found, &map->claims[i]))
			return false;
	}
	return true;
}
