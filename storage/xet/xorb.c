/* xorb_refer must not lose a race with gc: it reads the row, refers the pack, and reads the row
 * again. Once the reference is held gc deletes nothing of the pack, so a row that is still the same
 * stays true. */
#include "storage/xet/xorb.h"

#include "storage/packs/pack_store_parts.h"
#include "storage/xet/xorb_row.h"

enum { MEASURE_ENTRIES = 32 };

static int not_stored(const struct chunk_id *hash, struct error *err);
static int length_in(struct pack_store *packs, const struct xorb *xorb, struct pack *pinned,
	uint64_t *out, struct error *err);
static int refer_in(struct store *store, struct db *db, const struct chunk_id *hash,
	struct xorb *out, struct error *err);
static int refer_pack(struct store *store, const struct xorb *xorb, struct error *err);
static void measure(struct pack_cache *cache, const struct pack *pack,
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

int xorb_refer(
	struct store *store, const struct chunk_id *hash, struct xorb *out, struct error *err)
{
	struct db *const db = store_reader_take(store, err);
	if (db == NULL)
		return -1;
	const int result = refer_in(store, db, hash, out, err);
	store_reader_give(store, db);
	return result;
}

int xorb_place_measure(struct pack_store *packs, const struct xorb_place *place, bool *out_whole,
	uint64_t *out_bytes, struct error *err)
{
	struct pack *const pack = pack_cache_pin(packs->cache, &place->pack, false, err);
	if (pack == NULL)
		return -1;
	measure(packs->cache, pack, place, out_whole, out_bytes);
	pack_cache_unpin(packs->cache, pack);
	return 0;
}

int xorb_length(struct store *store, const struct xorb *xorb, uint64_t *out, struct error *err)
{
	struct pack *const pack =
		pack_cache_pin(store_packs(store)->cache, &xorb->pack, false, err);
	return pack != NULL ? length_in(store_packs(store), xorb, pack, out, err) : -1;
}

int xorb_length_soon(struct store *store, const struct xorb *xorb, uint64_t *out, struct error *err)
{
	struct pack_store *const packs = store_packs(store);
	if (!pack_store_is_far(packs))
		return xorb_length(store, xorb, out, err);
	struct pack *const pack = pack_cache_pin_near(packs->cache, &xorb->pack, false);
	return pack != NULL
		? length_in(packs, xorb, pack, out, err)
		: error_set(err, ERROR_NOT_READY, "The index of the pack is not in memory.");
}

/* Measures the xorb and unpins its pack. */
static int length_in(struct pack_store *packs, const struct xorb *xorb, struct pack *pinned,
	uint64_t *out, struct error *err)
{
	const struct xorb_place place = {
		.hash = xorb->hash, .pack = xorb->pack, .first = xorb->first, .count = xorb->count};
	const struct pack_run run = {
		.pack = xorb->pack, .first = xorb->first, .chunks = xorb->count};
	bool is_whole;
	measure(packs->cache, pinned, &place, &is_whole, out);
	pack_cache_unpin(packs->cache, pinned);
	if (pack_store_is_damaged(packs, &run))
		return error_set(err, ERROR_NOT_FOUND, "The stored bytes of the xorb are damaged.");
	return is_whole ? 0 : error_set(err, ERROR_NOT_FOUND, "Chunks of the xorb were deleted.");
}

static int not_stored(const struct chunk_id *hash, struct error *err)
{
	char text[CHUNK_ID_TEXT_BYTES];
	chunk_id_format(hash, text);
	return error_set(err, ERROR_NOT_FOUND, "The xorb %s is not stored here.", text);
}

static int refer_in(struct store *store, struct db *db, const struct chunk_id *hash,
	struct xorb *out, struct error *err)
{
	struct xorb seen;
	int found = xorb_row_find(db, hash, &seen, err);
	if (found != 1)
		return found == 0 ? not_stored(hash, err) : -1;
	if (refer_pack(store, &seen, err) != 0)
		return -1;
	found = xorb_row_find(db, hash, out, err);
	if (found == 1 && pack_id_equal(&out->pack, &seen.pack))
		return 0;
	pack_store_unrefer(store_packs(store), &seen.pack);
	return found < 0
		? -1
		: error_set(err, ERROR_BUSY, "The xorb was removed just now. Please try again.");
}

/* A promised row keeps the chunks as rows of segments do, so a caller that has seen it is not
 * refused while gc works on the pack (pack_store.h). */
static int refer_pack(struct store *store, const struct xorb *xorb, struct error *err)
{
	struct pack_store *const packs = store_packs(store);
	if (xorb->promised_ms > store_now_ms(store))
		pack_store_refer_again(packs, &xorb->pack);
	else if (!pack_store_refer(packs, &xorb->pack))
		return error_set(err, ERROR_BUSY,
			"The garbage collection is working on the pack of the xorb. Please try again.");
	return 0;
}

static void measure(struct pack_cache *cache, const struct pack *pack,
	const struct xorb_place *place, bool *out_whole, uint64_t *out_bytes)
{
	struct pack_entry entries[MEASURE_ENTRIES];
	uint32_t seen = 0;
	ASSERT(place->count >= 1);
	*out_bytes = 0;
	while (seen < place->count) {
		const size_t wanted = place->count - seen < MEASURE_ENTRIES ? place->count - seen
									    : MEASURE_ENTRIES;
		const size_t found =
			pack_cache_copy_entries(cache, pack, place->first + seen, entries, wanted);
		if (found == 0)
			break;
		ASSERT(found <= wanted);
		for (size_t i = 0; i < found; i++)
			*out_bytes += PACK_RECORD_HEADER_BYTES + (uint64_t)shown_bytes(&entries[i]);
		seen += (uint32_t)found;
	}
	*out_whole = seen == place->count;
}

/* Xet clients see records with a codec of our own as plain ones. */
static uint32_t shown_bytes(const struct pack_entry *entry)
{
	return codec_private((enum codec)entry->codec) ? entry->size : entry->stored;
}
