/* The blob begins with the length of a checksum. An entry for each part follows: u32 number, u64
 * end, u8 1 when it has a checksum, and the checksum. All entries have the same length, with zeros
 * for a checksum that is missing, so that a part is found by its index; numbers rise. */
#include "storage/versions/derived_parts.h"

#include <string.h>

#include "base/little_endian.h"
#include "base/search.h"
#include "storage/versions/object.h"
#include "storage/versions/upload_set.h"

enum { ENTRY_HEAD_BYTES = 13 };

static size_t entry_bytes(struct span parts);
static const uint8_t *entry_at(struct span parts, size_t index);
static bool derived_parts_is_below(const void *entry, const void *number);
static int collect(struct db *db, const struct version *version, struct span map,
	struct buffer *out, struct error *err);
static void put_entry(
	const struct upload_set_part *part, uint64_t end, uint8_t checksum_len, struct buffer *out);

size_t derived_parts_count(struct span parts)
{
	return parts.len == 0 ? 0 : (parts.len - 1) / entry_bytes(parts);
}

bool derived_parts_are_sound(struct span parts)
{
	return parts.len == 0 ||
		(parts.data[0] <= CHECKSUM_MAX_BYTES && (parts.len - 1) % entry_bytes(parts) == 0);
}

struct object_part derived_parts_entry(
	struct span parts, size_t index, enum checksum_algorithm algorithm)
{
	ASSERT(index < derived_parts_count(parts));
	const uint8_t *const at = entry_at(parts, index);
	const uint64_t start =
		index == 0 ? 0 : little_endian_get(entry_at(parts, index - 1) + 4, 8);
	struct object_part part = {.number = (uint32_t)little_endian_get(at, 4),
		.offset = start,
		.size = little_endian_get(at + 4, 8) - start};
	if (at[12] == 0)
		return part;
	part.checksum.algorithm = algorithm;
	part.checksum.len = parts.data[0];
	memcpy(part.checksum.bytes, at + ENTRY_HEAD_BYTES, parts.data[0]);
	return part;
}

size_t derived_parts_find(struct span parts, uint32_t number)
{
	if (parts.len == 0)
		return 0;
	return search_lower_bound(entry_at(parts, 0), derived_parts_count(parts),
		entry_bytes(parts), derived_parts_is_below, &number);
}

int derived_parts_collect(
	struct db *db, const struct version *version, struct buffer *out, struct error *err)
{
	struct span map;
	struct db_statement *statement = NULL;
	if (version->part_count == 0)
		return 0;
	const int got =
		upload_set_map(db, version->part_set, version->contents, &map, &statement, err);
	if (got != 0)
		return got < 0
			? -1
			: error_set(err, ERROR_CORRUPT,
				  "%s: the map of a multipart object is missing.", db_path(db));
	const int result = collect(db, version, map, out, err);
	db_reset(statement);
	return result;
}

static size_t entry_bytes(struct span parts)
{
	return ENTRY_HEAD_BYTES + (size_t)parts.data[0];
}

static const uint8_t *entry_at(struct span parts, size_t index)
{
	return parts.data + 1 + index * entry_bytes(parts);
}

static bool derived_parts_is_below(const void *entry, const void *number)
{
	return little_endian_get(entry, 4) < *(const uint32_t *)number;
}

static int collect(struct db *db, const struct version *version, struct span map,
	struct buffer *out, struct error *err)
{
	const uint8_t checksum_len = (uint8_t)checksum_length(version->checksum.algorithm);
	if (part_map_count(map) > DERIVED_PARTS_MAX)
		return error_set(err, ERROR_PRECONDITION,
			"Version %lld keeps its segments: it has more than %d parts.",
			(long long)version->sequence, DERIVED_PARTS_MAX);
	buffer_add_byte(out, checksum_len);
	for (size_t i = 0; i < part_map_count(map); i++) {
		const struct part_map_entry entry = part_map_entry(map, i);
		struct upload_set_part part;
		if (upload_set_find(db, version->part_set, &entry, &part, err) != 0)
			return -1;
		put_entry(&part, entry.end, checksum_len, out);
	}
	return buffer_check(out, "the parts of a derived object", err);
}

static void put_entry(
	const struct upload_set_part *part, uint64_t end, uint8_t checksum_len, struct buffer *out)
{
	uint8_t entry[ENTRY_HEAD_BYTES + CHECKSUM_MAX_BYTES] = {0};
	ASSERT(checksum_len <= CHECKSUM_MAX_BYTES);
	little_endian_put(entry, part->number, 4);
	little_endian_put(entry + 4, end, 8);
	if (part->checksum_len > 0 && part->checksum_len == checksum_len) {
		entry[12] = 1;
		memcpy(entry + ENTRY_HEAD_BYTES, part->checksum, part->checksum_len);
	}
	buffer_add(out, entry, ENTRY_HEAD_BYTES + (size_t)checksum_len);
}
