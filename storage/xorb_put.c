/* Unknown at open: an ingest, then a change that adds the row. Known: its pack is held, the bytes are parsed and dropped, a change raises the
 * promise. Whether the hash has a row is judged in the change once more: by then another upload may have brought it. */
#include "storage/xorb_put.h"

#include <stdlib.h>

#include "base/memory.h"
#include "chunker/xorb_parse.h"
#include "storage/committer.h"
#include "storage/ingest.h"
#include "storage/pack_row.h"
#include "storage/store_internal.h"
#include "storage/xorb_row.h"

struct xorb_put {
	struct change change; /* first */
	struct store *store;
	struct xorb_put_params params;
	struct ingest *ingest;    /* NULL: the xorb is known */
	struct xorb_parse *check; /* of a known one */
	struct pack_id held;      /* its pack */
	bool inserted;
	bool failed;
	struct error error;
};

static void settle(struct xorb_put *const put)
{
	put->params.done(put->params.owner);
}

static int place(struct change *const change, struct error *const err)
{
	struct xorb_put *const put = (struct xorb_put *)change;
	return put->ingest == NULL ? 0 : ingest_place(put->ingest, err);
}

static int record_packs(const struct xorb_put *const put, struct db *const db, struct error *const err)
{
	const struct pack_record *records = NULL;
	const size_t count = ingest_packs(put->ingest, &records);
	for (size_t i = 0; i < count; i++)
		if (pack_row_record(db, &records[i], err) != 0)
			return -1;
	return 0;
}

static struct xorb placed_xorb(const struct xorb_put *const put)
{
	const struct stored_part *const part = ingest_part(put->ingest);
	ASSERT(part->segment_count == 1); /* nothing was found elsewhere, nothing is split */
	return (struct xorb){.hash = put->params.hash, .pack = part->segments->pack, .first = part->segments->first, .count = part->segments->count};
}

static int apply(struct change *const change, struct db *const db, struct error *const err)
{
	struct xorb_put *const put = (struct xorb_put *)change;
	const struct clock_source *const clock = store_clock(put->store);
	struct xorb xorb;
	const int found = xorb_row_find(db, &put->params.hash, &xorb, err);
	if (found < 0)
		return -1;
	put->inserted = found == 0;
	if (put->inserted && put->ingest == NULL)
		return error_set(err, ERROR_BUSY, "The xorb was removed while it was on its way. Send it again.");
	if (put->inserted) {
		if (record_packs(put, db, err) != 0)
			return -1;
		xorb = placed_xorb(put);
	}
	xorb.promised_ms = clock->wall_ms(clock) + store_xet_options(put->store)->upload_promise_ms;
	return xorb_row_put(db, &xorb, err);
}

static void committed(struct change *const change)
{
	struct xorb_put *const put = (struct xorb_put *)change;
	put->failed = change->failed;
	if (put->failed)
		put->error = change->error;
	if (put->ingest != NULL && !change->failed && put->inserted)
		ingest_committed(put->ingest);
	if (put->ingest != NULL && change->in_doubt)
		ingest_in_doubt(put->ingest);
	settle(put);
}

static void submit(struct xorb_put *const put)
{
	put->change.place = place;
	put->change.apply = apply;
	put->change.done = committed;
	committer_submit(store_committer(put->store), &put->change);
}

static void ingest_is_done(void *const owner)
{
	struct xorb_put *const put = owner;
	put->failed = ingest_outcome(put->ingest, &put->error) != 0;
	if (put->failed)
		settle(put);
	else
		submit(put);
}

static void ingest_has_room(void *const owner)
{
	struct xorb_put *const put = owner;
	if (put->params.room != NULL)
		put->params.room(put->params.owner);
}

/* 1 with its pack held, 0, -1. A pack that gc works on cannot be held: then the bytes are stored anew. */
static int hold_known(struct xorb_put *const put, struct error *const err)
{
	struct xorb xorb;
	struct db *const db = store_reader_take(put->store, err);
	if (db == NULL)
		return -1;
	int found = xorb_row_find(db, &put->params.hash, &xorb, err);
	if (found == 1 && !pack_store_refer(store_packs(put->store), &xorb.pack))
		found = 0;
	if (found == 1)
		put->held = xorb.pack;
	store_reader_give(put->store, db);
	return found;
}

static int discard(void *const taker, const struct xorb_record *const record, struct error *const err)
{
	(void)taker, (void)record, (void)err;
	return 0;
}

static int open_ingest(struct xorb_put *const put, struct error *const err)
{
	const struct ingest_xorb xorb = {.hash = put->params.hash, .private_codecs = put->params.private_codecs};
	const struct ingest_options options = {
		.packs = store_packs(put->store),
		.xorb = &xorb,
		.room = ingest_has_room,
		.done = ingest_is_done,
		.owner = put,
	};
	put->ingest = ingest_open(&options, err);
	return put->ingest == NULL ? -1 : 0;
}

struct xorb_put *xorb_put_open(struct store *const store, const struct xorb_put_params *const params, struct error *const err)
{
	struct xorb_put *const put = memory_new(sizeof *put);
	put->store = store;
	put->params = *params;
	const int known = hold_known(put, err);
	if (known == 1)
		put->check = xorb_parse_new(discard, put, params->private_codecs);
	if (known == 1 || (known == 0 && open_ingest(put, err) == 0))
		return put;
	xorb_put_free(put);
	return NULL;
}

enum sink_result xorb_put_write(struct xorb_put *const put, const struct span bytes, struct error *const err)
{
	if (put->ingest != NULL)
		return ingest_write(put->ingest, bytes, err);
	return xorb_parse_push(put->check, bytes, err) == 0 ? SINK_TAKEN : SINK_FAILED;
}

void xorb_put_finish(struct xorb_put *const put)
{
	if (put->ingest != NULL) {
		ingest_finish(put->ingest); /* `put` may be gone when this returns */
		return;
	}
	put->failed = xorb_parse_end_as(put->check, &put->params.hash, &put->error) != 0;
	if (put->failed)
		settle(put);
	else
		submit(put);
}

int xorb_put_outcome(struct xorb_put *const put, bool *const out_inserted, struct error *const err)
{
	if (put->failed) {
		*err = put->error;
		return -1;
	}
	*out_inserted = put->inserted;
	return 0;
}

void xorb_put_free(struct xorb_put *const put)
{
	if (put == NULL)
		return;
	ingest_free(put->ingest);
	if (put->check != NULL)
		pack_store_unrefer(store_packs(put->store), &put->held);
	xorb_parse_free(put->check);
	free(put);
}
