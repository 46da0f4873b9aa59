/* A view keeps one reader in a snapshot, and the row of the version that was found last, so that to
 * find and then open it reads the row once. Opening depends on the version's kind: inline bytes are
 * copied, segments are assembled from packs, and a recipe becomes a derived_body. Each source holds
 * its packs before the snapshot ends. */
#include "storage/objects/object_view.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "storage/objects/object_row.h"
#include "storage/packs/assemble.h"
#include "storage/versions/content_damage.h"
#include "storage/versions/derived_body.h"
#include "storage/versions/derived_row.h"
#include "storage/versions/part.h"

enum { SOON_SEGMENTS = 1024 }; /* read in about 1 ms */

struct object_view {
	struct store *store;
	struct db *db;          /* a reader in a snapshot */
	struct version version; /* the one found last; sequence 0: none */
};

/* The range of the version that is to be opened. */
struct view_range {
	uint64_t offset;
	uint64_t length;
	size_t max_segments; /* not_ready when there are more; 0: any number */
	bool tells_damage;   /* of the range that is known already */
};

struct object_view *object_view_new(struct store *store, struct error *err)
{
	struct db *const db = store_snapshot_take(store, err);
	if (db == NULL)
		return NULL;
	struct object_view *const view = memory_new(sizeof(*view));
	view->store = store;
	view->db = db;
	return view;
}

int object_view_renew(struct object_view *view, struct error *err)
{
	view->version.sequence = 0;
	db_snapshot_end(view->db);
	return db_snapshot_begin(view->db, err);
}

void object_view_free(struct object_view *view)
{
	if (view == NULL)
		return;
	store_snapshot_give(view->store, view->db);
	free(view);
}

int object_view_find(struct object_view *view, const struct object_ref *ref, struct arena *arena,
	struct object *out, struct error *err)
{
	struct version *const version = &view->version;
	memset(out, 0, sizeof(*out));
	version->sequence = 0;
	if (object_find_row(view->db, ref, arena, version, err) != 0) {
		version->sequence = 0;
		return -1;
	}
	if (object_of_version(version, arena, out, err) != 0)
		return -1;
	return version->is_marker && ref->version.kind == VERSION_REF_CURRENT
		? object_no_key(ref->key, err)
		: 0;
}

static struct body_source *open_inline(struct db *db, const struct version *version,
	const struct view_range *asked, struct error *err)
{
	struct span bytes;
	struct db_statement *statement = NULL;
	if (part_inline_load(db, version->sequence, version->contents, &bytes, &statement, err) !=
		0)
		return NULL;
	struct body_source *const source = assemble_open_inline(
		span_slice(bytes, (size_t)asked->offset, (size_t)asked->length));
	db_reset(statement);
	return source;
}

static struct body_source *open_segments(struct object_view *view, struct span name,
	const struct view_range *asked, struct error *err)
{
	struct pack_store *const packs = store_packs(view->store);
	const struct version *const version = &view->version;
	struct body_source *source = NULL;
	struct part_range range = {.offset = asked->offset,
		.length = asked->length,
		.max_segments = asked->max_segments};
	if (part_set_load(view->db, version->part_set, version->size, version->contents, &range,
		    err) != 0)
		return NULL;
	if (range.segment_count == 0)
		return assemble_open_inline(span_of(NULL, 0));
	/* Within the snapshot: the packs are held before a sweep of a later state can release them
	 * (invariant 5). */
	const int damaged = asked->tells_damage
		? assemble_check_damaged(packs, range.segments, range.segment_count, range.skip,
			  asked->length, err)
		: 0;
	if (damaged == 0)
		source = assemble_open(
			packs, range.segments, range.segment_count, range.skip, asked->length, err);
	else if (damaged == 1)
		content_damage_error(name, err);
	free(range.segments);
	return source;
}

static struct body_source *open_derived(struct object_view *view, struct span name,
	const struct view_range *asked, struct error *err)
{
	const struct version *const version = &view->version;
	const struct derived_body_params params = {
		.store = view->store,
		.db = view->db,
		.recipe = derived_row_load(view->db, version->sequence, version->contents, err),
		.from = asked->offset,
		.to = asked->offset + asked->length,
		.levels = DERIVED_DEPTH_MAX,
		.max_segments = asked->max_segments,
	};
	struct derived_body *const body =
		params.recipe == NULL ? NULL : derived_body_open(&params, err);
	const int damaged =
		body != NULL && asked->tells_damage ? derived_body_check_damaged(body, err) : 0;
	if (body != NULL && damaged == 0)
		return derived_body_source(body, params.from, params.to);
	if (damaged == 1)
		content_damage_error(name, err);
	derived_body_close(body);
	return NULL;
}

/* Loads the row of `object`, unless the view has just found it. */
static int load_version(struct object_view *view, const struct object *object, struct error *err)
{
	if (view->version.sequence == object->sequence)
		return 0;
	const int got =
		version_find_sequence(view->db, object->sequence, NULL, &view->version, err);
	if (got == 1)
		return 0;
	view->version.sequence = 0;
	return got == 0 ? object_no_key(object->key, err) : -1;
}

/* Chunks that were seen damaged are read again, which waits for a network in a far place. */
static int check_soon(
	const struct object_view *view, const struct view_range *asked, struct error *err)
{
	struct pack_store *const packs = store_packs(view->store);
	if (asked->max_segments == 0 || !pack_store_is_far(packs) ||
		!pack_store_knows_damage(packs))
		return 0;
	return error_set(err, ERROR_NOT_READY, "The bytes may be damaged and must be read first.");
}

static struct body_source *open_range(struct object_view *view, const struct object *object,
	const struct view_range *asked, struct error *err)
{
	const struct version *const version = &view->version;
	if (load_version(view, object, err) != 0 || check_soon(view, asked, err) != 0)
		return NULL;
	ASSERT(version->sequence == object->sequence);
	if (version->is_marker) {
		object_no_key(object->key, err);
		return NULL;
	}
	if (asked->offset > version->size || asked->length > version->size - asked->offset) {
		error_set(err, ERROR_RANGE, "Bytes %llu+%llu lie outside the object of %llu bytes.",
			(unsigned long long)asked->offset, (unsigned long long)asked->length,
			(unsigned long long)version->size);
		return NULL;
	}
	if (version->kind == VERSION_INLINE)
		return open_inline(view->db, version, asked, err);
	return version->kind == VERSION_DERIVED ? open_derived(view, object->key, asked, err)
						: open_segments(view, object->key, asked, err);
}

struct body_source *object_view_open(struct object_view *view, const struct object *object,
	uint64_t offset, uint64_t length, struct error *err)
{
	return open_range(
		view, object, &(struct view_range){.offset = offset, .length = length}, err);
}

struct body_source *object_view_open_soon(struct object_view *view, const struct object *object,
	uint64_t offset, uint64_t length, struct error *err)
{
	return open_range(view, object,
		&(struct view_range){.offset = offset,
			.length = length,
			.max_segments = SOON_SEGMENTS,
			.tells_damage = true},
		err);
}

struct body_source *object_view_open_told(struct object_view *view, const struct object *object,
	uint64_t offset, uint64_t length, struct error *err)
{
	return open_range(view, object,
		&(struct view_range){.offset = offset, .length = length, .tells_damage = true},
		err);
}
