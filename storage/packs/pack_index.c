/* Three ways to an index: it grows xorb by xorb while the pack is written; the sidecar file is
 * decoded; or the pack is walked from its end to its front, footer by footer, because a footer
 * tells where it begins. Offsets are never stored: they follow from the stored lengths. */
#include "storage/packs/pack_index.h"

#include <stdlib.h>
#include <string.h>

#include "base/little_endian.h"
#include "base/memory.h"
#include "base/search.h"
#include "chunker/codec.h"

enum {
	INDEX_READ_VERSION = 1,
	INDEX_WRITE_VERSION = 1,
	INDEX_HEADER_BYTES = 48,
	INDEX_XORB_BYTES = CHUNK_ID_BYTES + 8,
	INDEX_CHECKSUM_BYTES = 8,
	INDEX_MAX_BYTES = INDEX_HEADER_BYTES +
		PACK_MAX_CHUNKS * (INDEX_XORB_BYTES + PACK_ENTRY_BYTES) + INDEX_CHECKSUM_BYTES
};

static const char index_magic[8] = "DBKTPIDX";

struct walk_footer { /* a footer on the way from the end to the front */
	struct pack_footer footer;
	struct pack_entry *entries;
	struct walk_footer *next;
};

static bool pack_number_is_before(const void *element, const void *key);
static void index_make_room(struct pack_index *index, uint32_t chunks, uint32_t xorbs);
static uint32_t index_grown(uint32_t capacity, uint32_t needed);
static int index_check(
	struct span bytes, uint32_t *out_chunks, uint32_t *out_xorbs, struct error *err);
static int index_decode_xorb(struct pack_index *index, const uint8_t *at,
	const uint8_t *entry_bytes, uint32_t chunks, struct pack_entry *entries, struct error *err);
static int walk_header(struct backend_file *file, const struct pack_id *pack, struct error *err);
static int walk_read(
	struct backend_file *file, void *into, size_t len, uint64_t offset, struct error *err);
static struct walk_footer *walk_one(
	struct backend_file *file, uint64_t end, uint64_t *out_start, struct error *err);
static int walk_collect(struct pack_index *index, struct walk_footer *first, struct error *err);
static struct pack_index *index_from_sidecar(
	struct backend *backend, const struct pack_id *pack, uint64_t length);

struct pack_index *pack_index_new(const struct pack_id *pack)
{
	struct pack_index *const index = memory_new(sizeof(*index));
	index->pack = *pack;
	index->file = *pack;
	index->length = PACK_HEADER_BYTES;
	return index;
}

void pack_index_free(struct pack_index *index)
{
	if (index == NULL)
		return;
	free(index->numbers);
	free(index->entries);
	free(index->xorbs);
	free(index);
}

size_t pack_index_memory(const struct pack_index *index)
{
	const size_t numbers =
		index->numbers != NULL ? index->capacity * sizeof(*index->numbers) : 0;
	return sizeof(*index) + index->capacity * sizeof(*index->entries) +
		index->xorb_capacity * sizeof(*index->xorbs) + numbers;
}

uint32_t pack_index_number(const struct pack_index *index, uint32_t at)
{
	ASSERT(at < index->count);
	return index->numbers != NULL ? index->numbers[at] : at;
}

uint32_t pack_numbers_at(const uint32_t *numbers, uint32_t count, uint32_t chunk)
{
	return (uint32_t)search_lower_bound(
		numbers, count, sizeof(*numbers), pack_number_is_before, &chunk);
}

uint32_t pack_index_at(const struct pack_index *index, uint32_t chunk)
{
	if (index->numbers == NULL)
		return chunk < index->count ? chunk : index->count;
	return pack_numbers_at(index->numbers, index->count, chunk);
}

const struct pack_entry *pack_index_find(const struct pack_index *index, uint32_t chunk)
{
	const uint32_t at = pack_index_at(index, chunk);
	return at < index->count && pack_index_number(index, at) == chunk ? &index->entries[at]
									  : NULL;
}

void pack_index_add_xorb(struct pack_index *index, const struct chunk_id *hash,
	const struct pack_entry *entries, uint32_t count)
{
	ASSERT(count >= 1 && count <= XORB_MAX_CHUNKS && index->count + count <= PACK_MAX_CHUNKS &&
		index->numbers == NULL);
	index_make_room(index, count, 1);
	index->xorbs[index->xorb_count++] =
		(struct pack_xorb){.hash = *hash, .first = index->count, .count = count};
	uint64_t at = index->length;
	for (uint32_t i = 0; i < count; i++) {
		struct pack_entry *const entry = &index->entries[index->count++];
		*entry = entries[i];
		entry->offset = (uint32_t)at;
		at += PACK_RECORD_HEADER_BYTES + (uint64_t)entry->stored;
	}
	index->length = at + pack_format_footer_bytes(count);
	ASSERT(index->length <= UINT32_MAX);
}

void pack_index_cut(struct pack_index *index, uint32_t chunks)
{
	ASSERT(chunks <= index->count && index->numbers == NULL);
	while (index->xorb_count > 0 && index->xorbs[index->xorb_count - 1].first >= chunks) {
		const struct pack_xorb *const last = &index->xorbs[--index->xorb_count];
		index->length = index->entries[last->first].offset;
		index->count = last->first;
	}
	ASSERT(index->count == chunks);
}

void pack_index_encode(const struct pack_index *index, struct buffer *out)
{
	ASSERT(index->numbers == NULL);
	const size_t size = INDEX_HEADER_BYTES + (size_t)index->xorb_count * INDEX_XORB_BYTES +
		(size_t)index->count * PACK_ENTRY_BYTES + INDEX_CHECKSUM_BYTES;
	uint8_t *const start = buffer_reserve(out, size);
	if (start == NULL)
		return;
	memset(start, 0, INDEX_HEADER_BYTES);
	memcpy(start, index_magic, sizeof(index_magic));
	little_endian_put(start + 8, INDEX_READ_VERSION, 2);
	little_endian_put(start + 10, INDEX_WRITE_VERSION, 2);
	little_endian_put(start + 12, index->count, 4);
	memcpy(start + 16, index->pack.bytes, PACK_ID_BYTES);
	little_endian_put(start + 32, index->length, 8);
	little_endian_put(start + 40, index->xorb_count, 4);
	uint8_t *at = start + INDEX_HEADER_BYTES;
	for (uint32_t i = 0; i < index->xorb_count; i++, at += INDEX_XORB_BYTES) {
		memcpy(at, index->xorbs[i].hash.bytes, CHUNK_ID_BYTES);
		little_endian_put(at + CHUNK_ID_BYTES, index->xorbs[i].first, 4);
		little_endian_put(at + CHUNK_ID_BYTES + 4, index->xorbs[i].count, 4);
	}
	for (uint32_t i = 0; i < index->count; i++, at += PACK_ENTRY_BYTES)
		pack_format_put_entry(&index->entries[i], at);
	little_endian_put(at, xxh3_64(span_of(start, size - INDEX_CHECKSUM_BYTES)), 8);
	buffer_commit(out, size);
}

struct pack_index *pack_index_decode(struct span bytes, struct error *err)
{
	uint32_t chunks = 0;
	uint32_t xorbs = 0;
	if (index_check(bytes, &chunks, &xorbs, err) != 0)
		return NULL;
	struct pack_id pack;
	memcpy(pack.bytes, bytes.data + 16, PACK_ID_BYTES);
	struct pack_index *index = pack_index_new(&pack);
	index_make_room(index, chunks, xorbs);
	struct pack_entry *const entries = memory_new_array(XORB_MAX_CHUNKS, sizeof(*entries));
	const uint8_t *const entry_bytes =
		bytes.data + INDEX_HEADER_BYTES + (size_t)xorbs * INDEX_XORB_BYTES;
	int result = 0;
	for (uint32_t i = 0; i < xorbs && result == 0; i++)
		result = index_decode_xorb(index,
			bytes.data + INDEX_HEADER_BYTES + (size_t)i * INDEX_XORB_BYTES, entry_bytes,
			chunks, entries, err);
	free(entries);
	if (result == 0 &&
		(index->count != chunks || index->length != little_endian_get(bytes.data + 32, 8)))
		result = error_set(err, ERROR_CORRUPT,
			"The records of a pack index do not add up to the length of its pack.");
	if (result != 0) {
		pack_index_free(index);
		return NULL;
	}
	return index;
}

struct pack_index *pack_index_walk(
	struct backend_file *file, const struct pack_id *pack, uint64_t length, struct error *err)
{
	struct walk_footer *first = NULL;
	int result = length <= UINT32_MAX
		? walk_header(file, pack, err)
		: error_set(err, ERROR_CORRUPT, "the pack is over 4 GiB long.");
	for (uint64_t end = length; result == 0 && end != PACK_HEADER_BYTES;) {
		struct walk_footer *const walked = walk_one(file, end, &end, err);
		if (walked == NULL) {
			result = -1;
			break;
		}
		walked->next = first;
		first = walked;
	}
	struct pack_index *const index = pack_index_new(pack);
	if (result != 0) {
		struct error ignored = {0};
		walk_collect(index, first, &ignored);
	} else {
		result = walk_collect(index, first, err);
	}
	if (result == 0)
		return index;
	char text[PACK_ID_TEXT_BYTES];
	pack_id_format(pack, text);
	error_wrap(err, "Pack %s cannot be indexed", text);
	pack_index_free(index);
	return NULL;
}

struct pack_index *pack_index_load(struct backend *backend, const struct pack_id *pack,
	uint64_t length, bool *out_walked, struct error *err)
{
	struct pack_index *index = index_from_sidecar(backend, pack, length);
	*out_walked = index == NULL;
	if (index != NULL)
		return index;
	char name[PACK_NAME_BYTES];
	pack_format_name(pack, PACK_FILE_PACK, name);
	struct backend_file *file;
	if (backend->ops->open(backend, name, &file, err) != 0)
		return NULL;
	index = pack_index_walk(file, pack, length, err);
	if (index == NULL && err->kind == ERROR_CORRUPT && backend_forget(file, 0, length))
		index = pack_index_walk(file, pack, length, err);
	backend->ops->close(file);
	return index;
}

int pack_index_save(const struct pack_index *index, struct backend *backend, struct error *err)
{
	struct buffer bytes;
	buffer_init(&bytes, INDEX_MAX_BYTES);
	pack_index_encode(index, &bytes);
	char name[PACK_NAME_BYTES];
	pack_format_name(&index->pack, PACK_FILE_INDEX, name);
	const int result = buffer_check(&bytes, name, err) != 0
		? -1
		: backend->ops->put_derived(backend, name, buffer_span(&bytes), err);
	buffer_release(&bytes);
	return result;
}

static bool pack_number_is_before(const void *element, const void *key)
{
	return *(const uint32_t *)element < *(const uint32_t *)key;
}

static void index_make_room(struct pack_index *index, uint32_t chunks, uint32_t xorbs)
{
	const uint32_t capacity = index_grown(index->capacity, index->count + chunks);
	if (capacity > index->capacity)
		index->entries = memory_grow(index->entries, capacity, sizeof(*index->entries));
	index->capacity = capacity;
	const uint32_t xorb_capacity = index_grown(index->xorb_capacity, index->xorb_count + xorbs);
	if (xorb_capacity > index->xorb_capacity)
		index->xorbs = memory_grow(index->xorbs, xorb_capacity, sizeof(*index->xorbs));
	index->xorb_capacity = xorb_capacity;
}

static uint32_t index_grown(uint32_t capacity, uint32_t needed)
{
	return needed <= capacity ? capacity : needed > 2 * capacity ? needed : 2 * capacity;
}

/* Checks header and checksum, and gives the counts, which then fit the length. */
static int index_check(
	struct span bytes, uint32_t *out_chunks, uint32_t *out_xorbs, struct error *err)
{
	if (bytes.len < INDEX_HEADER_BYTES + INDEX_CHECKSUM_BYTES ||
		memcmp(bytes.data, index_magic, sizeof(index_magic)) != 0)
		return error_set(err, ERROR_CORRUPT, "A pack index does not begin with its magic.");
	if (little_endian_get(bytes.data + 8, 2) > INDEX_READ_VERSION)
		return error_set(err, ERROR_UNSUPPORTED,
			"A pack index has a newer format version than %d.", INDEX_READ_VERSION);
	if (little_endian_get(bytes.data + bytes.len - INDEX_CHECKSUM_BYTES, 8) !=
		xxh3_64(span_slice(bytes, 0, bytes.len - INDEX_CHECKSUM_BYTES)))
		return error_set(err, ERROR_CORRUPT, "A pack index has a wrong checksum.");
	const uint64_t chunks = little_endian_get(bytes.data + 12, 4);
	const uint64_t xorbs = little_endian_get(bytes.data + 40, 4);
	const uint64_t size = INDEX_HEADER_BYTES + xorbs * INDEX_XORB_BYTES +
		chunks * PACK_ENTRY_BYTES + INDEX_CHECKSUM_BYTES;
	if (chunks < 1 || chunks > PACK_MAX_CHUNKS || xorbs < 1 || xorbs > chunks ||
		size != bytes.len)
		return error_set(err, ERROR_CORRUPT,
			"The chunks and xorbs that a pack index counts do not fit its length.");
	*out_chunks = (uint32_t)chunks;
	*out_xorbs = (uint32_t)xorbs;
	return 0;
}

/* Adds the xorb described at `at`. The entry of chunk n is at `entry_bytes` + n *
 * PACK_ENTRY_BYTES. */
static int index_decode_xorb(struct pack_index *index, const uint8_t *at,
	const uint8_t *entry_bytes, uint32_t chunks, struct pack_entry *entries, struct error *err)
{
	struct chunk_id hash;
	memcpy(hash.bytes, at, CHUNK_ID_BYTES);
	const uint64_t first = little_endian_get(at + CHUNK_ID_BYTES, 4);
	const uint64_t count = little_endian_get(at + CHUNK_ID_BYTES + 4, 4);
	if (first != index->count || count < 1 || count > XORB_MAX_CHUNKS || count > chunks - first)
		return error_set(
			err, ERROR_CORRUPT, "The xorbs of a pack index do not follow one another.");
	uint64_t end = index->length + pack_format_footer_bytes((uint32_t)count);
	for (uint64_t i = 0; i < count; i++) {
		if (!pack_format_get_entry(
			    entry_bytes + (first + i) * PACK_ENTRY_BYTES, &entries[i]))
			return error_set(err, ERROR_CORRUPT,
				"An entry of a pack index has an impossible length or codec.");
		end += PACK_RECORD_HEADER_BYTES + (uint64_t)entries[i].stored;
	}
	if (end > UINT32_MAX)
		return error_set(err, ERROR_CORRUPT,
			"The records of a pack index add up to more than 4 GiB.");
	pack_index_add_xorb(index, &hash, entries, (uint32_t)count);
	return 0;
}

static int walk_header(struct backend_file *file, const struct pack_id *pack, struct error *err)
{
	uint8_t header[PACK_HEADER_BYTES];
	return walk_read(file, header, sizeof(header), 0, err) != 0
		? -1
		: pack_format_check_header(header, pack, err);
}

static int walk_read(
	struct backend_file *file, void *into, size_t len, uint64_t offset, struct error *err)
{
	const struct iovec part = {.iov_base = into, .iov_len = len};
	return file->backend->ops->read(file, &part, 1, offset, err);
}

/* Reads the footer that ends at `end`; NULL with the error set. Its xorb begins at *out_start. */
static struct walk_footer *walk_one(
	struct backend_file *file, uint64_t end, uint64_t *out_start, struct error *err)
{
	uint8_t tail[PACK_FOOTER_TAIL_BYTES];
	if (end < PACK_HEADER_BYTES + sizeof(tail)) {
		error_set(err, ERROR_CORRUPT, "the pack ends inside its first xorb.");
		return NULL;
	}
	if (walk_read(file, tail, sizeof(tail), end - sizeof(tail), err) != 0)
		return NULL;
	const size_t size = pack_format_footer_size(tail);
	if (size == 0 || size > end - PACK_HEADER_BYTES) {
		error_set(err, ERROR_CORRUPT, "the bytes before byte %llu are not a xorb footer.",
			(unsigned long long)end);
		return NULL;
	}
	struct walk_footer *const walked = memory_new(sizeof(*walked));
	walked->entries = memory_new_array(size / PACK_ENTRY_BYTES, sizeof(*walked->entries));
	uint8_t *const bytes = memory_new(size);
	int result = walk_read(file, bytes, size, end - size, err);
	if (result == 0)
		result = pack_format_get_footer(
			span_of(bytes, size), &walked->footer, walked->entries, err);
	if (result == 0 && walked->footer.record_bytes > end - size - PACK_HEADER_BYTES)
		result = error_set(
			err, ERROR_CORRUPT, "a xorb footer names more records than lie before it.");
	free(bytes);
	if (result != 0) {
		free(walked->entries);
		free(walked);
		return NULL;
	}
	*out_start = end - size - walked->footer.record_bytes;
	return walked;
}

/* Moves the walked footers into the index, front to back, and frees them. */
static int walk_collect(struct pack_index *index, struct walk_footer *first, struct error *err)
{
	int result = 0;
	while (first != NULL) {
		struct walk_footer *const walked = first;
		first = walked->next;
		if (walked->footer.count > PACK_MAX_CHUNKS - index->count)
			result = error_set(err, ERROR_CORRUPT,
				"the pack holds more than %d chunks.", PACK_MAX_CHUNKS);
		if (result == 0)
			pack_index_add_xorb(
				index, &walked->footer.hash, walked->entries, walked->footer.count);
		free(walked->entries);
		free(walked);
	}
	return result;
}

static struct pack_index *index_from_sidecar(
	struct backend *backend, const struct pack_id *pack, uint64_t length)
{
	/* whatever is wrong with it, the footers have the same content */
	struct error ignored = {0};
	struct buffer bytes;
	buffer_init(&bytes, INDEX_MAX_BYTES);
	char name[PACK_NAME_BYTES];
	pack_format_name(pack, PACK_FILE_INDEX, name);
	struct pack_index *index = NULL;
	if (backend->ops->get(backend, name, &bytes, &ignored) == 0)
		index = pack_index_decode(buffer_span(&bytes), &ignored);
	if (index != NULL && (!pack_id_equal(&index->pack, pack) || index->length != length)) {
		pack_index_free(index);
		index = NULL;
	}
	buffer_release(&bytes);
	return index;
}
