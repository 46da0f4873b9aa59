/* Adjacent records are read in pieces of up to 1 MiB. When a piece cannot be read, because the disk
 * has a bad sector there or the file ends, its records are read one by one, so that what is found
 * is theirs alone. */
#include "storage/packs/pack_scan.h"

#include <stdlib.h>

#include "base/memory.h"
#include "storage/packs/pack_damage.h"
#include "storage/packs/pack_store_parts.h"

struct scan_piece {     /* adjacent records */
	uint32_t first; /* place of its first entry */
	uint32_t count;
	size_t bytes;
};

static struct scan_piece next_piece(const struct pack_index *index, uint32_t first);
static size_t record_bytes(const struct pack_entry *entry);
static int scan_piece(struct backend_file *file, const struct pack_index *index,
	const struct scan_piece *piece, const struct pack_scan *scan, uint8_t *bytes,
	struct error *err);
static int read_piece(struct backend_file *file, const struct pack_index *index,
	const struct scan_piece *piece, uint8_t *bytes, struct error *err);
static void check_piece(const struct pack_index *index, const struct scan_piece *piece,
	const struct pack_scan *scan, const uint8_t *bytes);
static int scan_each(struct backend_file *file, const struct pack_index *index,
	const struct scan_piece *piece, const struct pack_scan *scan, uint8_t *bytes,
	struct error *err);

int pack_scan_records(struct backend_file *file, const struct pack_index *index, uint32_t from,
	const struct pack_scan *scan, struct error *err)
{
	uint8_t *const bytes = memory_new(PACK_SCAN_BYTES);
	int result = 0;
	for (uint32_t at = from; result == 0 && at < index->count;) {
		const struct scan_piece piece = next_piece(index, at);
		if (scan->spend(scan->owner, piece.bytes))
			result = scan_piece(file, index, &piece, scan, bytes, err);
		else
			result = error_set(err, ERROR_BUSY, "The scan of a pack was stopped.");
		at += piece.count;
		if (result == 0 && scan->passed != NULL)
			scan->passed(scan->owner, at);
	}
	free(bytes);
	return result;
}

static struct scan_piece next_piece(const struct pack_index *index, uint32_t first)
{
	struct scan_piece piece = {.first = first};
	while (first + piece.count < index->count) {
		const struct pack_entry *const entry = &index->entries[first + piece.count];
		const bool follows = entry->offset == index->entries[first].offset + piece.bytes;
		if (!follows || piece.bytes + record_bytes(entry) > PACK_SCAN_BYTES)
			break;
		piece.bytes += record_bytes(entry);
		piece.count++;
	}
	ASSERT(piece.count > 0); /* a record is far smaller than a piece */
	return piece;
}

static size_t record_bytes(const struct pack_entry *entry)
{
	return PACK_RECORD_HEADER_BYTES + (size_t)entry->stored;
}

static int scan_piece(struct backend_file *file, const struct pack_index *index,
	const struct scan_piece *piece, const struct pack_scan *scan, uint8_t *bytes,
	struct error *err)
{
	struct error why = {0};
	if (read_piece(file, index, piece, bytes, &why) == 0) {
		check_piece(index, piece, scan, bytes);
		return 0;
	}
	if (!pack_damage_is(&why)) {
		*err = why;
		return -1;
	}
	if (piece->count > 1)
		return scan_each(file, index, piece, scan, bytes, err);
	scan->found(scan->owner, pack_index_number(index, piece->first), &why);
	return 0;
}

static int read_piece(struct backend_file *file, const struct pack_index *index,
	const struct scan_piece *piece, uint8_t *bytes, struct error *err)
{
	const struct iovec part = {.iov_base = bytes, .iov_len = piece->bytes};
	return file->backend->ops->read(file, &part, 1, index->entries[piece->first].offset, err);
}

static void check_piece(const struct pack_index *index, const struct scan_piece *piece,
	const struct pack_scan *scan, const uint8_t *bytes)
{
	for (uint32_t at = piece->first; at < piece->first + piece->count; at++) {
		const struct pack_entry *const entry = &index->entries[at];
		struct error why = {0};
		if (pack_record_check(bytes, entry, bytes + PACK_RECORD_HEADER_BYTES, &why) != 0)
			scan->found(scan->owner, pack_index_number(index, at), &why);
		bytes += record_bytes(entry);
	}
}

static int scan_each(struct backend_file *file, const struct pack_index *index,
	const struct scan_piece *piece, const struct pack_scan *scan, uint8_t *bytes,
	struct error *err)
{
	int result = 0;
	for (uint32_t i = 0; result == 0 && i < piece->count; i++) {
		const struct scan_piece one = {.first = piece->first + i,
			.count = 1,
			.bytes = record_bytes(&index->entries[piece->first + i])};
		if (scan->spend(scan->owner, one.bytes))
			result = scan_piece(file, index, &one, scan, bytes, err);
		else
			result = error_set(err, ERROR_BUSY, "The scan of a pack was stopped.");
	}
	return result;
}
