/* Loading walks the segments of the content and splits each at the borders of its xorbs; every
 * piece becomes a term. The segments of a large range are loaded a slice at a time, so that the
 * memory of a request depends on its terms alone. Placing then walks the pieces of each xorb in
 * rising order, so that each chunk of a pack is looked at once, and sums up the lengths of the
 * shown records. */
#include "storage/xet/reconstruction.h"

#include <stdlib.h>

#include "base/memory.h"
#include "chunker/chunk_hash.h"
#include "storage/packs/xorb_view.h"
#include "storage/versions/part.h"

static const uint64_t SLICE_BYTES = UINT64_C(1) << 30;

struct loader {
	struct reconstruction *plan;
	struct pack_store *packs;
	struct reconstruction_walk walk;
	struct xorb_view *view; /* of the segment before; NULL: none yet */
	uint32_t sizes[XORB_MAX_CHUNKS];
};

/* Makes *view a view of this pack. */
static int view_of(struct pack_store *packs, struct xorb_view **view, const struct pack_id *pack,
	struct error *err)
{
	if (*view != NULL && pack_id_equal(xorb_view_pack(*view), pack))
		return 0;
	xorb_view_close(*view);
	*view = xorb_view_open(packs, pack, err);
	return *view != NULL ? 0 : -1;
}

/* Loads the chunks of one segment, xorb by xorb. */
static int load_segment(struct loader *loader, const struct segment *segment, struct error *err)
{
	if (view_of(loader->packs, &loader->view, &segment->pack, err) != 0)
		return -1;
	const uint64_t before = loader->walk.at;
	const uint64_t end = (uint64_t)segment->first + segment->count;
	for (uint64_t chunk = segment->first; chunk < end;) {
		struct pack_xorb xorb;
		if (xorb_view_find(loader->view, (uint32_t)chunk, &xorb, err) != 0)
			return -1;
		const uint64_t xorb_end = (uint64_t)xorb.first + xorb.count;
		const uint64_t stop = xorb_end < end ? xorb_end : end;
		ASSERT(chunk >= xorb.first && chunk < stop);
		const struct reconstruction_term run = {
			.xorb = xorb.hash,
			.first = (uint32_t)(chunk - xorb.first),
			.end = (uint32_t)(stop - xorb.first),
			.place = {.pack = segment->pack, .base = xorb.first, .count = xorb.count},
		};
		if (xorb_view_sizes(loader->view, (uint32_t)chunk, (uint32_t)stop, loader->sizes,
			    err) != 0 ||
			reconstruction_add(loader->plan, &loader->walk, &run, loader->sizes, err) !=
				0)
			return -1;
		chunk = stop;
	}
	if (loader->walk.at - before != segment->bytes)
		return error_set(err, ERROR_CORRUPT,
			"The chunks of a segment have %llu bytes, not the %llu that the catalog says.",
			(unsigned long long)(loader->walk.at - before),
			(unsigned long long)segment->bytes);
	return 0;
}

static int load_slice(struct loader *loader, struct db *db, const struct xet_content *content,
	uint64_t from, uint64_t to, struct error *err)
{
	struct part_range range = {.offset = from, .length = to - from};
	if (part_set_load(db, content->part_set, content->size, content->contents, &range, err) !=
		0)
		return -1;
	loader->walk.at = from - range.skip;
	int result = 0;
	for (size_t i = 0; i < range.segment_count && result == 0; i++)
		result = load_segment(loader, &range.segments[i], err);
	free(range.segments);
	if (result == 0 && loader->walk.at < to)
		result = error_set(
			err, ERROR_CORRUPT, "The segments of a file end before its size.");
	return result;
}

static int load_segments(
	struct loader *loader, struct db *db, const struct xet_content *content, struct error *err)
{
	for (uint64_t at = loader->walk.start; at < loader->walk.end; at = loader->walk.at) {
		const uint64_t rest = loader->walk.end - at;
		if (load_slice(loader, db, content, at,
			    at + (rest < SLICE_BYTES ? rest : SLICE_BYTES), err) != 0)
			return -1;
	}
	return 0;
}

/* Inline bytes are one chunk, which is shown as a xorb of its own. */
static int load_inline(
	struct loader *loader, struct db *db, const struct xet_content *content, struct error *err)
{
	struct span bytes;
	struct db_statement *statement = NULL;
	if (part_inline_load(db, content->version, content->contents, &bytes, &statement, err) != 0)
		return -1;
	const uint32_t size = (uint32_t)bytes.len;
	const struct reconstruction_term run = {.xorb = chunk_hash(bytes),
		.first = 0,
		.end = 1,
		.place = {.count = 1, .version = content->version}};
	db_reset(statement);
	return reconstruction_add(loader->plan, &loader->walk, &run, &size, err);
}

int reconstruction_load(struct reconstruction *plan, struct store *store, struct db *db,
	const struct xet_content *content, struct reconstruction_bytes *bytes, struct error *err)
{
	ASSERT(bytes->from <= bytes->to && bytes->to <= content->size);
	bytes->skip = 0;
	if (content->kind == XET_CONTENT_EMPTY || bytes->from == bytes->to)
		return 0;
	if (content->kind == XET_CONTENT_DERIVED)
		return error_set(err, ERROR_NOT_READY,
			"The records of the derived version %lld have not been made yet.",
			(long long)content->version);
	struct loader *const loader = memory_new(sizeof(*loader));
	loader->plan = plan;
	loader->packs = store_packs(store);
	loader->walk = (struct reconstruction_walk){.start = bytes->from, .end = bytes->to};
	const int result = content->kind == XET_CONTENT_INLINE
		? load_inline(loader, db, content, err)
		: load_segments(loader, db, content, err);
	bytes->skip = loader->walk.skip;
	xorb_view_close(loader->view);
	free(loader);
	return result;
}

struct placer {
	struct pack_store *packs;
	bool as_stored;
	struct xorb_view *view;
	struct reconstruction_place place; /* of the piece before */
	uint32_t chunk;                    /* end of that piece, in the xorb */
	uint64_t offset;                   /* of that chunk in the shown xorb */
};

/* Moves to a chunk of this place, for a piece that does not touch the one before. */
static void seek_chunk(struct placer *placer, const struct reconstruction_place *place,
	uint32_t chunk, bool same_xorb)
{
	const bool goes_on = same_xorb && place->base == placer->place.base &&
		pack_id_equal(&place->pack, &placer->place.pack);
	if (!goes_on) {
		placer->chunk = 0;
		placer->offset = 0;
	}
	placer->offset += xorb_view_shown(placer->view, place->base + placer->chunk,
		place->base + chunk, placer->as_stored, NULL);
}

static int place_piece(struct placer *placer, struct reconstruction_piece *piece, bool touches,
	bool same_xorb, struct error *err)
{
	const struct reconstruction_place *const place = &piece->place;
	ASSERT(piece->first < piece->end);
	if (view_of(placer->packs, &placer->view, &place->pack, err) != 0)
		return -1;
	if (!touches)
		seek_chunk(placer, place, piece->first, same_xorb);
	uint32_t present;
	piece->offset = placer->offset;
	piece->length = xorb_view_shown(placer->view, place->base + piece->first,
		place->base + piece->end, placer->as_stored, &present);
	if (present != piece->end - piece->first)
		return error_set(
			err, ERROR_CORRUPT, "Chunks of a segment are missing in their pack.");
	placer->offset += piece->length;
	placer->chunk = piece->end;
	placer->place = *place;
	return 0;
}

/* Places the one record of an inline version. Its length is the size of the content so far. */
static void place_inline(struct reconstruction *plan, struct reconstruction_range *range)
{
	struct reconstruction_piece *const piece = &plan->pieces[range->piece];
	piece->offset = 0;
	piece->length += PACK_RECORD_HEADER_BYTES;
	range->total = piece->length;
}

static int place_range(
	struct placer *placer, struct reconstruction *plan, size_t index, struct error *err)
{
	struct reconstruction_range *const range = &plan->ranges[index];
	const bool same_xorb =
		index > 0 && chunk_id_equal(&range->xorb, &plan->ranges[index - 1].xorb);
	for (size_t i = 0; i < range->piece_count; i++)
		if (place_piece(placer, &plan->pieces[range->piece + i], i > 0, same_xorb, err) !=
			0)
			return -1;
	const struct reconstruction_place *const last = &placer->place;
	range->total = placer->offset +
		xorb_view_shown(placer->view, last->base + placer->chunk, last->base + last->count,
			placer->as_stored, NULL);
	return 0;
}

int reconstruction_place(
	struct reconstruction *plan, struct store *store, bool as_stored, struct error *err)
{
	reconstruction_merge(plan);
	struct placer placer = {.packs = store_packs(store), .as_stored = as_stored};
	int result = 0;
	for (size_t i = 0; i < plan->range_count && result == 0; i++) {
		if (plan->pieces[plan->ranges[i].piece].place.version == 0)
			result = place_range(&placer, plan, i, err);
		else
			place_inline(plan, &plan->ranges[i]);
	}
	xorb_view_close(placer.view);
	return result;
}
