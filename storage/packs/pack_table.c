/* The table lists xorbs, then entries with their chunk numbers, then a tail with both counts and a
 * checksum. The reader takes the tail first, checks everything, and computes the offsets from the
 * stored lengths. */
#include "storage/packs/pack_table.h"

#include <stdlib.h>
#include <string.h>

#include "base/little_endian.h"
#include "base/memory.h"
#include "chunker/codec.h"

enum {
	TABLE_CHECKSUM_BYTES = 8,
	TABLE_MAX_BYTES = PACK_MAX_CHUNKS * (PACK_TABLE_XORB_BYTES + PACK_TABLE_ENTRY_BYTES) +
		PACK_TABLE_TAIL_BYTES
};

static const char table_magic[8] = "DBKTLIVE";

static uint32_t count_living(const struct pack_index *from, const uint8_t *live);
static struct pack_index *index_of(
	const struct pack_id *pack, const struct pack_id *file, uint32_t chunks, uint32_t xorbs);
static bool xorb_has(const struct pack_xorb *xorb, uint32_t number);
static void index_add(
	struct pack_index *index, uint32_t number, const struct pack_entry *entry, uint64_t *end);
static size_t table_bytes(size_t chunks, size_t xorbs);
static int decode_xorbs(struct pack_index *index, const uint8_t *at, struct error *err);
static int decode_entries(
	struct pack_index *index, const uint8_t *at, uint64_t *end, struct error *err);
static struct pack_index *table_from_pack(struct backend *backend, const struct pack_id *pack,
	const struct pack_id *file, uint64_t length, struct error *err);
static int table_read(
	struct backend_file *file, void *into, size_t len, uint64_t offset, struct error *err);
static struct pack_index *table_from_copy(struct backend *backend, const struct pack_id *pack,
	const struct pack_id *file, uint64_t length);

struct pack_index *pack_table_select(
	const struct pack_index *from, const struct pack_id *file, const uint8_t *live)
{
	const uint32_t living = count_living(from, live);
	ASSERT(living > 0);
	struct pack_index *const index = index_of(&from->pack, file, living, from->xorb_count);
	uint64_t end = PACK_HEADER_BYTES;
	const struct pack_xorb *xorb = from->xorbs;
	bool has_xorb = false;
	for (uint32_t i = 0; i < from->count; i++) {
		const uint32_t number = pack_index_number(from, i);
		if (!pack_table_lives(live, number))
			continue;
		for (; !xorb_has(xorb, number); xorb++) {
			ASSERT(xorb + 1 < from->xorbs + from->xorb_count);
			has_xorb = false;
		}
		if (!has_xorb)
			index->xorbs[index->xorb_count++] = *xorb;
		has_xorb = true;
		index_add(index, number, &from->entries[i], &end);
	}
	index->length = end + table_bytes(index->count, index->xorb_count);
	return index;
}

uint64_t pack_table_length(const struct pack_index *from, const uint8_t *live)
{
	if (count_living(from, live) == 0)
		return 0;
	struct pack_index *const index = pack_table_select(from, &from->file, live);
	const uint64_t length = index->length;
	pack_index_free(index);
	return length;
}

void pack_table_encode(const struct pack_index *index, struct buffer *out)
{
	const size_t size = table_bytes(index->count, index->xorb_count);
	uint8_t *const start = buffer_reserve(out, size);
	if (start == NULL)
		return;
	uint8_t *at = start;
	for (uint32_t i = 0; i < index->xorb_count; i++, at += PACK_TABLE_XORB_BYTES) {
		memcpy(at, index->xorbs[i].hash.bytes, CHUNK_ID_BYTES);
		little_endian_put(at + CHUNK_ID_BYTES, index->xorbs[i].first, 4);
		little_endian_put(at + CHUNK_ID_BYTES + 4, index->xorbs[i].count, 4);
	}
	for (uint32_t i = 0; i < index->count; i++, at += PACK_TABLE_ENTRY_BYTES) {
		little_endian_put(at, pack_index_number(index, i), 4);
		pack_format_put_entry(&index->entries[i], at + 4);
	}
	memcpy(at, table_magic, sizeof(table_magic));
	little_endian_put(at + 8, index->count, 4);
	little_endian_put(at + 12, index->xorb_count, 4);
	little_endian_put(at + 16, 0, 8);
	little_endian_put(at + 24, xxh3_64(span_of(start, size - TABLE_CHECKSUM_BYTES)), 8);
	buffer_commit(out, size);
}

size_t pack_table_size(const uint8_t tail[PACK_TABLE_TAIL_BYTES])
{
	const uint64_t chunks = little_endian_get(tail + 8, 4);
	const uint64_t xorbs = little_endian_get(tail + 12, 4);
	const bool possible = memcmp(tail, table_magic, sizeof(table_magic)) == 0 && chunks >= 1 &&
		chunks <= PACK_MAX_CHUNKS && xorbs >= 1 && xorbs <= chunks &&
		little_endian_get(tail + 16, 8) == 0;
	return possible ? table_bytes((size_t)chunks, (size_t)xorbs) : 0;
}

struct pack_index *pack_table_decode(struct span bytes, const struct pack_id *pack,
	const struct pack_id *file, struct error *err)
{
	const uint8_t *const tail = bytes.len < PACK_TABLE_TAIL_BYTES
		? NULL
		: bytes.data + bytes.len - PACK_TABLE_TAIL_BYTES;
	if (tail == NULL || pack_table_size(tail) != bytes.len) {
		error_set(err, ERROR_CORRUPT,
			"the table of the compacted pack has %zu bytes, but names another size.",
			bytes.len);
		return NULL;
	}
	const size_t summed = bytes.len - TABLE_CHECKSUM_BYTES;
	if (little_endian_get(bytes.data + summed, 8) != xxh3_64(span_slice(bytes, 0, summed))) {
		error_set(err, ERROR_CORRUPT,
			"the table of the compacted pack has a wrong checksum.");
		return NULL;
	}
	const uint32_t xorbs = (uint32_t)little_endian_get(tail + 12, 4);
	struct pack_index *const index =
		index_of(pack, file, (uint32_t)little_endian_get(tail + 8, 4), xorbs);
	uint64_t end = PACK_HEADER_BYTES;
	if (decode_xorbs(index, bytes.data, err) == 0 &&
		decode_entries(index, bytes.data + xorbs * PACK_TABLE_XORB_BYTES, &end, err) == 0) {
		index->length = end + bytes.len;
		return index;
	}
	pack_index_free(index);
	return NULL;
}

int pack_table_save(const struct pack_index *index, struct backend *backend, struct error *err)
{
	struct buffer bytes;
	char name[PACK_NAME_BYTES];
	buffer_init(&bytes, TABLE_MAX_BYTES);
	pack_table_encode(index, &bytes);
	pack_format_name(&index->file, PACK_FILE_INDEX, name);
	const int result = buffer_check(&bytes, name, err) != 0
		? -1
		: backend->ops->put(backend, name, buffer_span(&bytes), err);
	buffer_release(&bytes);
	return result;
}

struct pack_index *pack_table_load(struct backend *backend, const struct pack_id *pack,
	const struct pack_id *file, uint64_t length, struct error *err)
{
	char text[PACK_ID_TEXT_BYTES];
	struct pack_index *index = table_from_pack(backend, pack, file, length, err);
	if (index == NULL && err->kind == ERROR_CORRUPT)
		index = table_from_copy(backend, pack, file, length);
	pack_id_format(pack, text);
	if (index == NULL)
		error_wrap(err, "Pack %s cannot be indexed", text);
	return index;
}

struct pack_index *pack_table_read(struct backend_file *file, const struct pack_id *pack,
	const struct pack_id *name, uint64_t length, struct error *err)
{
	uint8_t header[PACK_HEADER_BYTES];
	uint8_t tail[PACK_TABLE_TAIL_BYTES];
	if (length < sizeof(header) + sizeof(tail) || length > UINT32_MAX) {
		error_set(err, ERROR_CORRUPT, "a compacted pack cannot have %llu bytes.",
			(unsigned long long)length);
		return NULL;
	}
	if (table_read(file, header, sizeof(header), 0, err) != 0 ||
		pack_format_check_compacted_header(header, pack, name, err) != 0 ||
		table_read(file, tail, sizeof(tail), length - sizeof(tail), err) != 0)
		return NULL;
	const size_t size = pack_table_size(tail);
	if (size == 0 || size > length - sizeof(header)) {
		error_set(err, ERROR_CORRUPT, "the compacted pack does not end with its table.");
		return NULL;
	}
	uint8_t *const bytes = memory_new(size);
	struct pack_index *index = NULL;
	if (table_read(file, bytes, size, length - size, err) == 0)
		index = pack_table_decode(span_of(bytes, size), pack, name, err);
	free(bytes);
	if (index == NULL || index->length == length)
		return index;
	error_set(err, ERROR_CORRUPT,
		"the records of the compacted pack do not add up to its length.");
	pack_index_free(index);
	return NULL;
}

struct pack_index *pack_own_index(struct backend_file *file, const struct pack_id *pack,
	const struct pack_id *name, uint64_t length, struct error *err)
{
	return pack_id_equal(pack, name) ? pack_index_walk(file, pack, length, err)
					 : pack_table_read(file, pack, name, length, err);
}

static uint32_t count_living(const struct pack_index *from, const uint8_t *live)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < from->count; i++)
		count += pack_table_lives(live, pack_index_number(from, i));
	return count;
}

static struct pack_index *index_of(
	const struct pack_id *pack, const struct pack_id *file, uint32_t chunks, uint32_t xorbs)
{
	struct pack_index *const index = pack_index_new(pack);
	index->file = *file;
	index->numbers = memory_new_array(chunks, sizeof(*index->numbers));
	index->entries = memory_new_array(chunks, sizeof(*index->entries));
	index->capacity = chunks;
	index->xorbs = memory_new_array(xorbs, sizeof(*index->xorbs));
	index->xorb_capacity = xorbs;
	return index;
}

static bool xorb_has(const struct pack_xorb *xorb, uint32_t number)
{
	return number >= xorb->first && number - xorb->first < xorb->count;
}

static void index_add(
	struct pack_index *index, uint32_t number, const struct pack_entry *entry, uint64_t *end)
{
	ASSERT(index->count < index->capacity);
	index->numbers[index->count] = number;
	index->entries[index->count] = *entry;
	index->entries[index->count].offset = (uint32_t)*end;
	index->count++;
	*end += PACK_RECORD_HEADER_BYTES + (uint64_t)entry->stored;
}

static size_t table_bytes(size_t chunks, size_t xorbs)
{
	return xorbs * PACK_TABLE_XORB_BYTES + chunks * PACK_TABLE_ENTRY_BYTES +
		PACK_TABLE_TAIL_BYTES;
}

/* Xorbs must rise, must not overlap, and must end below the highest possible chunk number. */
static int decode_xorbs(struct pack_index *index, const uint8_t *at, struct error *err)
{
	uint64_t end = 0;
	for (uint32_t i = 0; i < index->xorb_capacity; i++, at += PACK_TABLE_XORB_BYTES) {
		struct pack_xorb *const xorb = &index->xorbs[index->xorb_count++];
		memcpy(xorb->hash.bytes, at, CHUNK_ID_BYTES);
		xorb->first = (uint32_t)little_endian_get(at + CHUNK_ID_BYTES, 4);
		xorb->count = (uint32_t)little_endian_get(at + CHUNK_ID_BYTES + 4, 4);
		if (xorb->first < end || xorb->count < 1 || xorb->count > XORB_MAX_CHUNKS ||
			xorb->first > PACK_MAX_CHUNKS - xorb->count)
			return error_set(err, ERROR_CORRUPT,
				"the xorbs of the compacted pack are out of order.");
		end = (uint64_t)xorb->first + xorb->count;
	}
	return 0;
}

/* Each chunk must lie in a xorb, and each xorb must have a chunk. */
static int decode_entries(
	struct pack_index *index, const uint8_t *at, uint64_t *end, struct error *err)
{
	uint32_t xorb = 0;
	bool is_used = false;
	for (uint32_t i = 0; i < index->capacity; i++, at += PACK_TABLE_ENTRY_BYTES) {
		struct pack_entry entry;
		const uint32_t number = (uint32_t)little_endian_get(at, 4);
		if (!pack_format_get_entry(at + 4, &entry))
			return error_set(err, ERROR_CORRUPT,
				"an entry of the compacted pack has an impossible length or codec.");
		if (!xorb_has(&index->xorbs[xorb], number) && is_used &&
			xorb + 1 < index->xorb_count)
			xorb++;
		is_used = true;
		if (!xorb_has(&index->xorbs[xorb], number) ||
			(i > 0 && number <= index->numbers[i - 1]))
			return error_set(err, ERROR_CORRUPT,
				"the chunks of the compacted pack are out of order.");
		index_add(index, number, &entry, end);
		if (*end > UINT32_MAX)
			return error_set(err, ERROR_CORRUPT,
				"the records of the compacted pack add up to more than 4 GiB.");
	}
	return xorb + 1 == index->xorb_count
		? 0
		: error_set(err, ERROR_CORRUPT, "a xorb of the compacted pack has no chunks.");
}

static struct pack_index *table_from_pack(struct backend *backend, const struct pack_id *pack,
	const struct pack_id *file, uint64_t length, struct error *err)
{
	char name[PACK_NAME_BYTES];
	struct backend_file *opened;
	pack_format_name(file, PACK_FILE_PACK, name);
	if (backend->ops->open(backend, name, &opened, err) != 0)
		return NULL;
	struct pack_index *index = pack_table_read(opened, pack, file, length, err);
	if (index == NULL && err->kind == ERROR_CORRUPT && backend_forget(opened, 0, length))
		index = pack_table_read(opened, pack, file, length, err);
	backend->ops->close(opened);
	return index;
}

static int table_read(
	struct backend_file *file, void *into, size_t len, uint64_t offset, struct error *err)
{
	const struct iovec part = {.iov_base = into, .iov_len = len};
	return file->backend->ops->read(file, &part, 1, offset, err);
}

/* Reads the copy beside the pack. */
static struct pack_index *table_from_copy(struct backend *backend, const struct pack_id *pack,
	const struct pack_id *file, uint64_t length)
{
	struct error ignored = {0}; /* the pack's own failure is the one to report */
	struct pack_index *index = NULL;
	struct buffer bytes;
	char name[PACK_NAME_BYTES];
	buffer_init(&bytes, TABLE_MAX_BYTES);
	pack_format_name(file, PACK_FILE_INDEX, name);
	if (backend->ops->get(backend, name, &bytes, &ignored) == 0)
		index = pack_table_decode(buffer_span(&bytes), pack, file, &ignored);
	buffer_release(&bytes);
	if (index == NULL || index->length == length)
		return index;
	pack_index_free(index);
	return NULL;
}
