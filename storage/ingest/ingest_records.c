/* Takes a serialized xorb: its records are read and verified, but not encoded again. Nothing is
 * deduplicated, because files name the chunks of a xorb by their places in it. */
#include "storage/ingest/ingest_internal.h"

static int ingest_records_take(void *taker, const struct xorb_record *record, struct error *err);
static void look_for_damage(struct ingest *ingest, const struct chunk_id *id);
static uint8_t *ingest_records_give_room(void *taker, size_t len, struct error *err);

void ingest_records_init(struct ingest *ingest, const struct ingest_xorb *xorb)
{
	ingest->declared_xorb = *xorb;
	ingest->options.xorb = &ingest->declared_xorb;
	ingest->serialized = xorb_parse_new(ingest_records_take, ingest, xorb->private_codecs);
	xorb_parse_gather_into(ingest->serialized, ingest_records_give_room);
}

int ingest_records_end(struct ingest *ingest, struct error *err)
{
	return xorb_parse_end_as(ingest->serialized, &ingest->declared_xorb.hash, err) == 0
		? ingest_end_chunks(ingest, err)
		: -1;
}

static int ingest_records_take(void *taker, const struct xorb_record *record, struct error *err)
{
	struct ingest *const ingest = taker;
	/* invariant 3: the parser computed the id from the content */
	const struct chunk_entry chunk = {.id = record->id, .size = record->content.len};
	const struct chunk_place place = {.pack = ingest->pack, .chunk = ingest->xorb.count};
	if (xorb_builder_add_record(&ingest->xorb, record, err) != 0)
		return -1;
	look_for_damage(ingest, &record->id);
	part_builder_add(&ingest->part_builder, &chunk, &place);
	metrics_add(ingest->store->metrics, METRIC_CHUNKS_WRITTEN, 1);
	if (ingest->xorb.bytes.len >= XORB_DRAIN_BYTES)
		ingest_pack_drain(ingest, false);
	return 0;
}

/* Notes a chunk that is damaged elsewhere, so that it is mended with this one. */
static void look_for_damage(struct ingest *ingest, const struct chunk_id *id)
{
	struct chunk_place place;
	size_t index = ingest->part_builder.count;
	if (pack_damage_is_known(ingest->store->damage) &&
		dedup_find(&ingest->dedup, id, index == 0, &place) == DEDUP_DAMAGED)
		ingest_check_damaged(ingest, index, &place);
}

static uint8_t *ingest_records_give_room(void *taker, size_t len, struct error *err)
{
	return xorb_builder_room(&((struct ingest *)taker)->xorb, len, err);
}
