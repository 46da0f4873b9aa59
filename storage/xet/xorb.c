#include "storage/xet/xorb.h"

#include "storage/packs/pack_store_parts.h"
#include "storage/xet/xorb_row.h"

enum { MEASURE_ENTRIES = 32 };

static int not_stored(const struct chunk_id *hash, struct error *err);
static int hold(struct store *store, struct db *db, const struct chunk_id *hash, struct xorb *out,
	struct error *err);
static int refer(struct store *store, const struct xorb *xorb, struct error *err);
static void measure(struct pack_cache *cache, const struct pack *pinned,
	const struct xorb_place *place, bool *out_whole, uint64_t *out_bytes);
static uint32_t shown_bytes(const struct pack_entry *entry);

int xorb_find(struct store *store, const struct chunk_id *hash, struct xorb *out, struct error *err)
{
	struct db *const db = store_reader_take(store, err);
	if (db == NULL)
		return -1;
	const int found = xorb_row_find(db, hash, out, err);
	store_reader_give(store, db);
	return found == 0 ? not_stored(hash, err) : found < 0 ? -1 : 0;
}

int xorb_hold(struct store *store, const struct chunk_id *hash, struct xorb *out, struct error *err)
{
	struct db *const db = store_reader_take(store, err);
	if (db == NULL)
		return -1;
	const int result = hold(store, db, hash, out, err);
	store_reader_give(store, db);
	return result;
}

int xorb_place_measure(struct pack_store *packs, const struct xorb_place *place, bool *out_whole,
	uint64_t *out_bytes, struct error *err)
{
	struct pack *const pinned = pack_cache_pin(packs->cache, &place->pack, false, err);
	if (pinned == NULL)
		return -1;
	measure(packs->cache, pinned, place, out_whole, out_bytes);
	pack_cache_unpin(packs->cache, pinned);
	return 0;
}

int xorb_length(struct store *store, const struct xorb *xorb, uint64_t *out, struct error *err)
{
	const struct xorb_place place = {
		.hash = xorb->hash, .pack = xorb->pack, .first = xorb->first, .count = xorb->count};
	const struct pack_run run = {
		.pack = xorb->pack, .first = xorb->first, .chunks = xorb->count};
	bool is_whole;
	if (xorb_place_measure(store_packs(store), &place, &is_whole, out, err) != 0)
		return -1;
	if (pack_store_is_damaged(store_packs(store), &run))
		return error_set(err, ERROR_NOT_FOUND, "What is stored of the xorb is damaged.");
	return is_whole ? 0 : error_set(err, ERROR_NOT_FOUND, "Chunks of the xorb are gone.");
}

static int not_stored(const struct chunk_id *hash, struct error *err)
{
	char text[CHUNK_ID_TEXT_BYTES];
	chunk_id_format(hash, text);
	return error_set(err, ERROR_NOT_FOUND, "The xorb %s is not stored here.", text);
}

/* Seen once more when it is held. */
static int hold(struct store *store, struct db *db, const struct chunk_id *hash, struct xorb *out,
	struct error *err)
{
	struct xorb seen;
	int found = xorb_row_find(db, hash, &seen, err);
	if (found != 1)
		return found == 0 ? not_stored(hash, err) : -1;
	if (refer(store, &seen, err) != 0)
		return -1;
	found = xorb_row_find(db, hash, out, err);
	if (found == 1 && pack_id_equal(&out->pack, &seen.pack))
		return 0;
	pack_store_unrefer(store_packs(store), &seen.pack);
	return found < 0 ? -1 : error_set(err, ERROR_BUSY, "The xorb has just gone.");
}

/* A row that promises is like one that leads to the chunks: who has seen it need not be refused
 * while gc works on the pack (pack_store.h). */
static int refer(struct store *store, const struct xorb *xorb, struct error *err)
{
	struct pack_store *const packs = store_packs(store);
	if (xorb->promised_ms > store_now_ms(store))
		pack_store_refer_again(packs, &xorb->pack);
	else if (!pack_store_refer(packs, &xorb->pack))
		return error_set(err, ERROR_BUSY,
			"The xorb is just being looked at by the garbage collection.");
	return 0;
}

static void measure(struct pack_cache *cache, const struct pack *pinned,
	const struct xorb_place *place, bool *out_whole, uint64_t *out_bytes)
{
	struct pack_entry entries[MEASURE_ENTRIES];
	uint32_t seen = 0;
	*out_bytes = 0;
	while (seen < place->count) {
		const size_t wanted = place->count - seen < MEASURE_ENTRIES ? place->count - seen
									    : MEASURE_ENTRIES;
		const size_t found = pack_cache_copy_entries(
			cache, pinned, place->first + seen, entries, wanted);
		if (found == 0)
			break;
		for (size_t i = 0; i < found; i++)
			*out_bytes += PACK_RECORD_HEADER_BYTES + (uint64_t)shown_bytes(&entries[i]);
		seen += (uint32_t)found;
	}
	*out_whole = seen == place->count;
}

/* Records with codecs of ours are shown to Xet clients without any. */
static uint32_t shown_bytes(const struct pack_entry *entry)
{
	return codec_private((enum codec)entry->codec) ? entry->size : entry->stored;
}
