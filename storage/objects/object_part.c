/* The parts come from one of three places: a single PUT has one part, which is the object; a
 * multipart object has the map of its part set and rows; and a version whose segments a recipe
 * replaced has a blob beside the recipe (derived_parts.h). All is read in one snapshot, because a
 * swap may come between two reads. */
#include "storage/objects/object_part.h"

#include <string.h>

#include "storage/objects/object_row.h"
#include "storage/versions/derived_parts.h"
#include "storage/versions/derived_row.h"
#include "storage/versions/upload_set.h"

static struct object_part whole_part(const struct object *object);
static int no_part(const struct object *object, uint32_t number, struct error *err);
static int find_part(struct db *db, const struct object *object, uint32_t number,
	struct object_part *out, struct error *err);
static int load_swapped(struct db *db, const struct object *object, struct span *out,
	struct db_statement **out_statement, struct error *err);
static int find_mapped(struct db *db, const struct object *object, uint32_t number,
	struct object_part *out, struct error *err);
static int load_map(struct db *db, const struct object *object, struct version *out,
	struct span *out_map, struct db_statement **out_statement, struct error *err);
static int read_part(struct db *db, const struct version *version,
	const struct part_map_entry *entry, struct object_part *out, struct error *err);
static int list_single(const struct object *object, struct object_parts_range range,
	struct arena *arena, struct object_parts *out, struct error *err);
static int no_memory(struct error *err);
static int list_multiple(struct store *store, const struct object *object,
	struct object_parts_range range, struct arena *arena, struct object_parts *out,
	struct error *err);
static int list_parts(struct db *db, const struct object *object, struct object_parts_range range,
	struct arena *arena, struct object_parts *out, struct error *err);
static int list_mapped(struct db *db, const struct object *object, struct object_parts_range range,
	struct arena *arena, struct object_parts *out, struct error *err);
static int list_swapped(struct span parts, const struct object *object,
	struct object_parts_range range, struct arena *arena, struct object_parts *out,
	struct error *err);

int object_find_part(struct store *store, const struct object *object, uint32_t number,
	struct object_part *out, struct error *err)
{
	if (object->part_count == 0) {
		*out = whole_part(object);
		return number == 1 ? 0 : no_part(object, number, err);
	}
	struct db *const db = store_snapshot_take(store, err);
	if (db == NULL)
		return -1;
	const int result = find_part(db, object, number, out, err);
	store_snapshot_give(store, db);
	return result;
}

int object_list_parts(struct store *store, const struct object *object,
	struct object_parts_range range, struct arena *arena, struct object_parts *out,
	struct error *err)
{
	*out = (struct object_parts){.parts = NULL};
	return object->part_count == 0 ? list_single(object, range, arena, out, err)
				       : list_multiple(store, object, range, arena, out, err);
}

static struct object_part whole_part(const struct object *object)
{
	return (struct object_part){
		.number = 1, .size = object->size, .checksum = object->checksum};
}

static int no_part(const struct object *object, uint32_t number, struct error *err)
{
	return error_set(err, ERROR_NO_PART, "The object has %lu part%s; there is no part %lu.",
		(unsigned long)(object->part_count > 0 ? object->part_count : 1),
		object->part_count > 1 ? "s" : "", (unsigned long)number);
}

static int find_part(struct db *db, const struct object *object, uint32_t number,
	struct object_part *out, struct error *err)
{
	struct span parts;
	struct db_statement *statement = NULL;
	const int swapped = load_swapped(db, object, &parts, &statement, err);
	if (swapped != 1)
		return swapped < 0 ? -1 : find_mapped(db, object, number, out, err);
	const size_t index = derived_parts_find(parts, number);
	*out = (struct object_part){.number = 0};
	if (index < derived_parts_count(parts))
		*out = derived_parts_entry(parts, index, object->checksum.algorithm);
	db_reset(statement);
	return out->number == number ? 0 : no_part(object, number, err);
}

/* 1: a recipe replaced the version's segments, and *out has its parts until the statement is reset.
 * 0: it has a part set. */
static int load_swapped(struct db *db, const struct object *object, struct span *out,
	struct db_statement **out_statement, struct error *err)
{
	struct version version;
	const int found = version_find_sequence(db, object->sequence, NULL, &version, err);
	if (found != 1)
		return found == 0 ? object_no_key(object->key, err) : -1;
	if (version.kind != VERSION_DERIVED)
		return 0;
	if (derived_row_parts(db, version.sequence, version.contents, out, out_statement, err) != 0)
		return -1;
	if (derived_parts_are_sound(*out))
		return 1;
	db_reset(*out_statement);
	return error_set(err, ERROR_CORRUPT, "%s: the parts of version %lld are damaged.",
		db_path(db), (long long)version.sequence);
}

static int find_mapped(struct db *db, const struct object *object, uint32_t number,
	struct object_part *out, struct error *err)
{
	struct version version;
	struct span map;
	struct db_statement *statement = NULL;
	if (load_map(db, object, &version, &map, &statement, err) != 0)
		return -1;
	const size_t index = part_map_find_number(map, number);
	int result = -1;
	if (index == part_map_count(map) || part_map_entry(map, index).number != number) {
		no_part(object, number, err);
	} else {
		const struct part_map_entry entry = part_map_entry(map, index);
		result = read_part(db, &version, &entry, out, err);
	}
	db_reset(statement);
	return result;
}

/* Finds the version's row and map; db_reset *out_statement. */
static int load_map(struct db *db, const struct object *object, struct version *out,
	struct span *out_map, struct db_statement **out_statement, struct error *err)
{
	const int found = version_find_sequence(db, object->sequence, NULL, out, err);
	if (found != 1)
		return found == 0 ? object_no_key(object->key, err) : -1;
	const int got =
		upload_set_map(db, out->part_set, out->contents, out_map, out_statement, err);
	if (got == 1)
		return error_set(err, ERROR_CORRUPT,
			"%s: the map of a multipart object is missing.", db_path(db));
	return got;
}

static int read_part(struct db *db, const struct version *version,
	const struct part_map_entry *entry, struct object_part *out, struct error *err)
{
	struct upload_set_part part;
	if (upload_set_find(db, version->part_set, entry, &part, err) != 0)
		return -1;
	*out = (struct object_part){
		.number = entry->number, .offset = entry->start, .size = part.size};
	if (part.checksum_len == 0 ||
		part.checksum_len != checksum_length(version->checksum.algorithm))
		return 0;
	out->checksum.algorithm = version->checksum.algorithm;
	out->checksum.len = part.checksum_len;
	memcpy(out->checksum.bytes, part.checksum, part.checksum_len);
	return 0;
}

static int list_single(const struct object *object, struct object_parts_range range,
	struct arena *arena, struct object_parts *out, struct error *err)
{
	out->parts = arena_take_array(arena, 1, sizeof(*out->parts));
	if (out->parts == NULL)
		return no_memory(err);
	out->parts[0] = whole_part(object);
	out->count = range.after == 0 && range.limit > 0 ? 1 : 0;
	out->truncated = range.after == 0 && range.limit == 0;
	return 0;
}

static int no_memory(struct error *err)
{
	return error_set(err, ERROR_NO_MEMORY,
		"The request's memory ran out while listing the parts of an object.");
}

static int list_multiple(struct store *store, const struct object *object,
	struct object_parts_range range, struct arena *arena, struct object_parts *out,
	struct error *err)
{
	struct db *const db = store_snapshot_take(store, err);
	if (db == NULL)
		return -1;
	const int result = list_parts(db, object, range, arena, out, err);
	store_snapshot_give(store, db);
	return result;
}

static int list_parts(struct db *db, const struct object *object, struct object_parts_range range,
	struct arena *arena, struct object_parts *out, struct error *err)
{
	struct span parts;
	struct db_statement *statement = NULL;
	const int swapped = load_swapped(db, object, &parts, &statement, err);
	if (swapped != 1)
		return swapped < 0 ? -1 : list_mapped(db, object, range, arena, out, err);
	const int result = list_swapped(parts, object, range, arena, out, err);
	db_reset(statement);
	return result;
}

static int list_mapped(struct db *db, const struct object *object, struct object_parts_range range,
	struct arena *arena, struct object_parts *out, struct error *err)
{
	struct version version;
	struct span map;
	struct db_statement *statement = NULL;
	if (load_map(db, object, &version, &map, &statement, err) != 0)
		return -1;
	const size_t first = range.after == UINT32_MAX ? part_map_count(map)
						       : part_map_find_number(map, range.after + 1);
	ASSERT(first <= part_map_count(map) && out->count == 0);
	const size_t left = part_map_count(map) - first;
	const size_t count = left < range.limit ? left : range.limit;
	int result = 0;
	out->parts = arena_take_array(arena, count + 1, sizeof(*out->parts));
	out->truncated = count < left;
	if (out->parts == NULL)
		result = no_memory(err);
	for (; result == 0 && out->count < count; out->count++) {
		const struct part_map_entry entry = part_map_entry(map, first + out->count);
		result = read_part(db, &version, &entry, &out->parts[out->count], err);
	}
	db_reset(statement);
	return result;
}

static int list_swapped(struct span parts, const struct object *object,
	struct object_parts_range range, struct arena *arena, struct object_parts *out,
	struct error *err)
{
	const size_t first = range.after == UINT32_MAX ? derived_parts_count(parts)
						       : derived_parts_find(parts, range.after + 1);
	ASSERT(first <= derived_parts_count(parts) && out->count == 0);
	const size_t left = derived_parts_count(parts) - first;
	const size_t count = left < range.limit ? left : range.limit;
	out->parts = arena_take_array(arena, count + 1, sizeof(*out->parts));
	out->truncated = count < left;
	if (out->parts == NULL)
		return no_memory(err);
	for (; out->count < count; out->count++)
		out->parts[out->count] =
			derived_parts_entry(parts, first + out->count, object->checksum.algorithm);
	return 0;
}
