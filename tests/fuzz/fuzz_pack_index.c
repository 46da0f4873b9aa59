/* Packs and pack indexes as a damaged or hostile disk may hold them. The first byte chooses: an
 * index, a xorb footer, a whole pack walked from its end, or the table of a compacted pack.
 * Checksums are put right first, or the rest would never be looked at. */
#include <stdlib.h>
#include <string.h>

#include "base/digest/xxh3.h"
#include "base/little_endian.h"
#include "base/memory.h"
#include "storage/packs/pack_table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { CHECKSUM_BYTES = 8, INDEX_BYTES = 64 * 1024 * 1024 };

static const struct pack_id pack = {.bytes = {0xfa, 0x22}};

static void put_checksum(uint8_t *bytes, size_t size)
{
	if (size >= CHECKSUM_BYTES)
		little_endian_put(bytes + size - CHECKSUM_BYTES,
			xxh3_64(span_of(bytes, size - CHECKSUM_BYTES)), CHECKSUM_BYTES);
}

/* Whatever was accepted lies in order inside its pack, and comes back the same from its own
 * bytes. */
static void check_index(const struct pack_index *index)
{
	struct error err = {0};
	struct buffer once;
	struct buffer twice;
	uint64_t end = PACK_HEADER_BYTES;
	for (uint32_t i = 0; i < index->count; i++) {
		ASSERT(index->entries[i].offset >= end);
		end = index->entries[i].offset + PACK_RECORD_HEADER_BYTES +
			(uint64_t)index->entries[i].stored;
	}
	ASSERT(end <= index->length);
	if (index->count == 0)
		return;
	buffer_init(&once, INDEX_BYTES);
	buffer_init(&twice, INDEX_BYTES);
	pack_index_encode(index, &once);
	struct pack_index *const again = pack_index_decode(buffer_span(&once), &err);
	ASSERT(again != NULL);
	pack_index_encode(again, &twice);
	ASSERT(span_equal(buffer_span(&once), buffer_span(&twice)));
	pack_index_free(again);
	buffer_release(&once);
	buffer_release(&twice);
}

static void try_index(uint8_t *bytes, size_t size)
{
	struct error err = {0};
	put_checksum(bytes, size);
	struct pack_index *const index = pack_index_decode(span_of(bytes, size), &err);
	ASSERT(index != NULL || err.kind == ERROR_CORRUPT || err.kind == ERROR_UNSUPPORTED);
	if (index != NULL)
		check_index(index);
	pack_index_free(index);
}

/* What was accepted lies in order, each chunk in a xorb, and comes back the same. */
static void check_table(const struct pack_index *index, struct span bytes)
{
	struct buffer again;
	uint64_t end = PACK_HEADER_BYTES;
	for (uint32_t i = 0; i < index->count; i++) {
		const uint32_t number = pack_index_number(index, i);
		ASSERT(number < PACK_MAX_CHUNKS &&
			pack_index_find(index, number) == &index->entries[i] &&
			index->entries[i].offset == end);
		end += PACK_RECORD_HEADER_BYTES + (uint64_t)index->entries[i].stored;
	}
	ASSERT(end + bytes.len == index->length);
	buffer_init(&again, INDEX_BYTES);
	pack_table_encode(index, &again);
	ASSERT(again.len == bytes.len);
	buffer_release(&again);
}

static void try_table(uint8_t *bytes, size_t size)
{
	struct error err = {0};
	put_checksum(bytes, size);
	struct pack_index *const index =
		pack_table_decode(span_of(bytes, size), &pack, &pack, &err);
	ASSERT(index != NULL || err.kind == ERROR_CORRUPT);
	if (index != NULL)
		check_table(index, span_of(bytes, size));
	pack_index_free(index);
}

static void try_footer(uint8_t *bytes, size_t size)
{
	struct error err = {0};
	struct pack_footer footer;
	struct pack_entry *const entries = memory_new_array(XORB_MAX_CHUNKS, sizeof *entries);
	put_checksum(bytes, size);
	if (pack_format_get_footer(span_of(bytes, size), &footer, entries, &err) == 0)
		ASSERT(pack_format_footer_bytes(footer.count) == size);
	else
		ASSERT(err.kind == ERROR_CORRUPT);
	free(entries);
}

/* The checksum of each footer that the walk would meet. */
static void put_footer_checksums(uint8_t *bytes, size_t end)
{
	while (end >= PACK_HEADER_BYTES + PACK_FOOTER_TAIL_BYTES) {
		const size_t size = pack_format_footer_size(bytes + end - PACK_FOOTER_TAIL_BYTES);
		if (size == 0 || size > end - PACK_HEADER_BYTES)
			return;
		put_checksum(bytes + end - size, size);
		const uint64_t records = little_endian_get(bytes + end - size + 12, 4);
		if (records > end - size - PACK_HEADER_BYTES)
			return;
		end -= size + (size_t)records;
	}
}

static void try_pack(uint8_t *bytes, size_t size)
{
	struct error err = {0};
	struct backend_file *file;
	if (size < PACK_HEADER_BYTES)
		return;
	pack_format_put_header(&pack, &(const struct pack_origin){.life = 1}, bytes);
	put_footer_checksums(bytes, size);
	struct backend *const backend = backend_memory_new();
	ASSERT(backend->ops->create(backend, "pack", &file, &err) == 0);
	ASSERT(backend->ops->append(file, span_of(bytes, size), 0, &err) == 0);
	struct pack_index *const index = pack_index_walk(file, &pack, size, &err);
	ASSERT(index != NULL || err.kind == ERROR_CORRUPT);
	if (index != NULL) {
		ASSERT(index->length == size);
		check_index(index);
	}
	pack_index_free(index);
	backend->ops->close(file);
	backend->ops->free(backend);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const tries[])(uint8_t * bytes, size_t size) = {
		try_index, try_footer, try_pack, try_table};
	if (size < 2)
		return 0;
	uint8_t *const bytes = memory_new(size - 1);
	memcpy(bytes, data + 1, size - 1);
	tries[data[0] % (sizeof tries / sizeof tries[0])](bytes, size - 1);
	free(bytes);
	return 0;
}
