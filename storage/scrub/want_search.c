/* damaged chunk --segments--> part set --> version --step_objects--> step, run
 *
 * There is no index from a part set to the versions that share it. So the part sets of all anchors
 * are listed first; there are far fewer of them than of objects. */
#include "storage/scrub/want_search.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/search.h"
#include "storage/core/pack_row.h"
#include "storage/packs/pack_store_parts.h"

enum {
	PLACES_MAX = 4096
}; /* damaged chunks that are looked up; the others wait for the next time */

struct anchor { /* an object of a step's anchor */
	int64_t set;
	int64_t version;
	int64_t step; /* the row in `steps` */
};
struct search {
	struct store *store;
	struct db *db;
	struct chunk_wants *wants;
	struct anchor *anchors; /* sorted by set */
	size_t count;
	size_t capacity;
};

struct found_segment {
	int64_t set;
	int64_t number; /* of its part */
	int64_t start;  /* in the part */
	uint32_t first;
};

static const char SQL_ANCHORS[] =
	"SELECT CASE WHEN v.kind = 2 AND coalesce(v.part_set, 0) = 0 THEN -v.sequence ELSE v.part_set END,"
	" v.sequence, o.step FROM step_objects o JOIN versions v ON v.sequence = o.version"
	" WHERE o.form = 0 AND o.step > 0 AND v.kind IN (1, 2) AND v.digest IS NOT NULL";
static const char SQL_SEGMENTS[] = "SELECT part_set, number, start, first FROM segments"
				   " WHERE pack = ?1 AND first <= ?2 AND first + count > ?2";
static const char SQL_BEFORE[] =
	"SELECT coalesce(sum(size), 0) FROM parts WHERE part_set = ?1 AND number < ?2";
static const char SQL_STEP[] =
	"SELECT b.name, r.name, s.step, v.size, v.digest FROM steps s JOIN runs r ON r.id = s.run"
	" JOIN buckets b ON b.id = r.bucket JOIN versions v ON v.sequence = ?2 WHERE s.id = ?1";

static int search_places(
	struct search *search, const struct chunk_place *places, size_t count, struct error *err);
static int list_anchors(struct search *search, struct error *err);
static int want_search_compare(const void *a, const void *b);
static int search_place(struct search *search, const struct chunk_place *place, struct error *err);
static int search_segments(struct search *search, const struct chunk_place *place,
	const struct pack_index *index, int64_t pack, struct error *err);
static int take_segment(struct search *search, const struct found_segment *segment,
	const struct pack_index *index, uint32_t chunk, struct error *err);
static bool want_search_is_before(const void *element, const void *set);
static int offset_of(struct search *search, const struct found_segment *segment,
	const struct pack_index *index, uint32_t chunk, uint64_t *out, struct error *err);
static int add_want(struct search *search, const struct anchor *anchor, struct chunk_want *want,
	struct error *err);

int want_search_run(struct store *store, struct chunk_wants *wants, struct error *err)
{
	size_t count;
	struct search search = {.store = store, .wants = wants};
	struct chunk_place *const places = pack_damage_list(store_packs(store)->damage, &count);
	chunk_wants_begin(wants);
	const int result = count == 0 ? 0 : search_places(&search, places, count, err);
	chunk_wants_end(wants);
	free(search.anchors);
	free(places);
	return result;
}

static int search_places(
	struct search *search, const struct chunk_place *places, size_t count, struct error *err)
{
	search->db = store_snapshot_take(search->store, err);
	if (search->db == NULL)
		return -1;
	int result = list_anchors(search, err);
	for (size_t i = 0; result == 0 && i < count && i < PLACES_MAX; i++)
		result = search_place(search, &places[i], err);
	store_snapshot_give(search->store, search->db);
	return result;
}

static int list_anchors(struct search *search, struct error *err)
{
	struct db_statement *const rows = db_query(search->db, SQL_ANCHORS, err);
	int got;
	while ((got = db_step(rows, err)) == 1) {
		search->anchors = memory_make_room(search->anchors, search->count,
			&search->capacity, sizeof(*search->anchors));
		search->anchors[search->count++] = (struct anchor){.set = db_column_i64(rows, 0),
			.version = db_column_i64(rows, 1),
			.step = db_column_i64(rows, 2)};
	}
	db_reset(rows);
	if (search->count > 0)
		qsort(search->anchors, search->count, sizeof(*search->anchors),
			want_search_compare);
	return got;
}

static int want_search_compare(const void *a, const void *b)
{
	const int64_t left = ((const struct anchor *)a)->set;
	const int64_t right = ((const struct anchor *)b)->set;
	return (left > right) - (left < right);
}

/* A pack whose index cannot be read has nothing to ask for. */
static int search_place(struct search *search, const struct chunk_place *place, struct error *err)
{
	struct pack_cache *const cache = store_packs(search->store)->cache;
	struct error ignored = {0};
	int64_t pack;
	const int known = pack_row_number(search->db, &place->pack, &pack, err);
	if (known != 1 || search->count == 0)
		return known < 0 ? -1 : 0;
	struct pack *const pinned = pack_cache_pin(cache, &place->pack, false, &ignored);
	if (pinned == NULL)
		return 0;
	const struct pack_index *const index = pack_cache_sealed_index(cache, pinned);
	const int result = index == NULL ? 0 : search_segments(search, place, index, pack, err);
	pack_cache_unpin(cache, pinned);
	return result;
}

static int search_segments(struct search *search, const struct chunk_place *place,
	const struct pack_index *index, int64_t pack, struct error *err)
{
	struct db_statement *const rows =
		db_query(search->db, SQL_SEGMENTS, err, db_i64(pack), db_i64(place->chunk));
	int got;
	while ((got = db_step(rows, err)) == 1) {
		const struct found_segment segment = {.set = db_column_i64(rows, 0),
			.number = db_column_i64(rows, 1),
			.start = db_column_i64(rows, 2),
			.first = (uint32_t)db_column_i64(rows, 3)};
		if (take_segment(search, &segment, index, place->chunk, err) != 0) {
			got = -1;
			break;
		}
	}
	db_reset(rows);
	return got;
}

static int take_segment(struct search *search, const struct found_segment *segment,
	const struct pack_index *index, uint32_t chunk, struct error *err)
{
	const struct pack_entry *const entry = pack_index_find(index, chunk);
	size_t at = search_lower_bound(search->anchors, search->count, sizeof(*search->anchors),
		want_search_is_before, &segment->set);
	if (entry == NULL || at == search->count || search->anchors[at].set != segment->set)
		return 0;
	struct chunk_want want = {.id = entry->id, .length = entry->size};
	if (offset_of(search, segment, index, chunk, &want.offset, err) != 0)
		return -1;
	for (; at < search->count && search->anchors[at].set == segment->set; at++)
		if (add_want(search, &search->anchors[at], &want, err) != 0)
			return -1;
	return 0;
}

static bool want_search_is_before(const void *element, const void *set)
{
	return ((const struct anchor *)element)->set < *(const int64_t *)set;
}

/* The place of the chunk's first byte in the version. */
static int offset_of(struct search *search, const struct found_segment *segment,
	const struct pack_index *index, uint32_t chunk, uint64_t *out, struct error *err)
{
	int64_t before = 0;
	if (db_find_i64(search->db, SQL_BEFORE, &before, err, db_i64(segment->set),
		    db_i64(segment->number)) < 0)
		return -1;
	uint64_t offset = (uint64_t)before + (uint64_t)segment->start;
	for (uint32_t at = pack_index_at(index, segment->first);
		at < index->count && pack_index_number(index, at) < chunk; at++)
		offset += index->entries[at].size;
	*out = offset;
	return 0;
}

static int add_want(struct search *search, const struct anchor *anchor, struct chunk_want *want,
	struct error *err)
{
	struct db_statement *const row =
		db_query(search->db, SQL_STEP, err, db_i64(anchor->step), db_i64(anchor->version));
	const int got = db_step(row, err);
	const struct span digest = got == 1 ? db_column_blob(row, 4) : (struct span){0};
	if (got == 1 && digest.len == sizeof(want->file_digest.bytes)) {
		const struct want_place place = {.bucket = db_column_blob(row, 0),
			.run = db_column_blob(row, 1),
			.step = (uint64_t)db_column_i64(row, 2)};
		want->file_size = (uint64_t)db_column_i64(row, 3);
		memcpy(want->file_digest.bytes, digest.data, digest.len);
		chunk_wants_add(search->wants, &place, want);
	}
	db_reset(row);
	return got < 0 ? -1 : 0;
}
