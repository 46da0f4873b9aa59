#include "storage/ingest/ingest_internal.h"

static bool ingest_find(struct ingest *ingest, const struct chunk_id *id, struct chunk_place *out);
static void ingest_take_found(struct ingest *ingest, const struct chunk_id *id,
	const struct chunk_place *place, struct span content);

int ingest_store_chunk(struct ingest *ingest, const struct chunk_id *id, struct span content,
	struct chunk_place *out, struct error *err)
{
	ASSERT(ingest->scratch != NULL);
	if (ingest->xorb.count > 0 &&
		!xorb_builder_fits(&ingest->xorb, content.len, ingest->store->pack_max_bytes) &&
		ingest_pack_seal(ingest, err) != 0)
		return -1;
	*out = (struct chunk_place){.pack = ingest->pack, .chunk = ingest->xorb.count};
	if (xorb_builder_add(&ingest->xorb, ingest->scratch->codec, id, content, err) != 0)
		return -1;
	metrics_add(ingest->store->metrics, METRIC_CHUNKS_WRITTEN, 1);
	if (ingest->xorb.bytes.len >= XORB_DRAIN_BYTES)
		ingest_pack_drain(ingest, false);
	return 0;
}

int ingest_take_chunk(
	void *taker, const struct chunk_id *id, struct span content, struct error *err)
{
	struct ingest *const ingest = taker;
	/* invariant 3: the chunk stream computed the id from these bytes */
	const struct chunk_entry chunk = {.id = *id, .size = content.len};
	if (ingest->is_inline) {
		part_builder_add_inline(&ingest->part_builder, &chunk);
		return 0;
	}
	struct chunk_place place;
	if (ingest_find(ingest, id, &place))
		ingest_take_found(ingest, id, &place, content);
	else if (ingest_store_chunk(ingest, id, content, &place, err) != 0)
		return -1;
	part_builder_add(&ingest->part_builder, &chunk, &place);
	return 0;
}

int ingest_end_chunks(struct ingest *ingest, struct error *err)
{
	if (ingest->xorb.count == 0)
		return 0;
	if (ingest->own != NULL || ingest->xorb.record_bytes > INGEST_SMALL_BYTES)
		return ingest_pack_seal(ingest, err);
	ingest->is_staged = true;
	return xorb_builder_finish(&ingest->xorb, &ingest->staged_hash, err);
}

int ingest_place(struct ingest *ingest, struct error *err)
{
	if (!ingest->is_staged || ingest->is_placed)
		return 0;
	struct chunk_place base;
	ASSERT(ingest->own == NULL);
	if (shared_pack_append(ingest->store, &ingest->xorb, &ingest->staged_hash, &base, err) != 0)
		return -1;
	part_builder_move(&ingest->part_builder, &ingest->pack, &base);
	ingest->placed = base;
	ingest->is_placed = true;
	metrics_add(ingest->store->metrics, METRIC_BYTES_STORED, (int64_t)ingest->xorb.bytes.len);
	return 0;
}

/* Whether the chunk is stored in a place that is worth taking, *out. Notes the chunk as damaged
 * when it is known to be. */
static bool ingest_find(struct ingest *ingest, const struct chunk_id *id, struct chunk_place *out)
{
	if (part_builder_find(&ingest->part_builder, id, out))
		return part_builder_accepts(&ingest->part_builder, out);
	enum dedup_found found =
		dedup_find(&ingest->dedup, id, ingest->part_builder.count == 0, out);
	if (found == DEDUP_DAMAGED)
		ingest_check_damaged(ingest, ingest->part_builder.count, out);
	return found == DEDUP_FOUND && part_builder_accepts(&ingest->part_builder, out);
}

/* Counts the chunk as found. A chunk that a helper finds wrong is stored, and counted, later. */
static void ingest_take_found(struct ingest *ingest, const struct chunk_id *id,
	const struct chunk_place *place, struct span content)
{
	metrics_add(ingest->store->metrics, METRIC_CHUNKS_DEDUPLICATED, 1);
	if (ingest_check_wants(ingest, place))
		ingest_check_add(ingest, id, place, content);
}
