/* Unknown at open: an ingest, then a change that adds the row. Known: a repeat (xorb_repeat.h),
 * then a change that raises the promise. Whether the hash has a row is judged in the change once
 * more: by then another upload may have brought it. */
#include "storage/xet/xorb_put.h"

#include <stdlib.h>

#include "base/memory.h"
#include "storage/core/committer.h"
#include "storage/core/pack_row.h"
#include "storage/core/store.h"
#include "storage/ingest/ingest.h"
#include "storage/xet/xet_options.h"
#include "storage/xet/xorb_repeat.h"
#include "storage/xet/xorb_row.h"

struct xorb_put {
	struct change change; /* first */
	struct store *store;
	struct xorb_put_params params;
	struct ingest *ingest;      /* NULL: the xorb is known */
	struct xorb_repeat *repeat; /* of a known one */
	bool inserted;
	bool mended;
	bool failed;
	struct error error;
};

static void settle(struct xorb_put *put)
{
	put->params.done(put->params.owner);
}

static int place(struct change *change, struct error *err)
{
	struct xorb_put *const put = (struct xorb_put *)change;
	return put->ingest == NULL ? 0 : ingest_place(put->ingest, err);
}

static int record_packs(const struct xorb_put *put, struct db *db, struct error *err)
{
	const struct pack_record *records = NULL;
	const size_t count = ingest_packs(put->ingest, &records);
	for (size_t i = 0; i < count; i++)
		if (pack_row_record(db, &records[i], err) != 0)
			return -1;
	return 0;
}

static struct xorb placed_xorb(const struct xorb_put *put)
{
	const struct stored_part *const part = ingest_part(put->ingest);
	ASSERT(part->segment_count == 1); /* nothing was found elsewhere, nothing is split */
	return (struct xorb){.hash = put->params.hash,
		.pack = part->segments->pack,
		.first = part->segments->first,
		.count = part->segments->count};
}

static int apply(struct change *change, struct db *db, struct error *err)
{
	struct xorb_put *const put = (struct xorb_put *)change;
	const struct clock_source *const clock = store_clock(put->store);
	struct xorb xorb;
	const int found = xorb_row_find(db, &put->params.hash, &xorb, err);
	if (found < 0)
		return -1;
	put->inserted = found == 0;
	if (put->inserted && put->ingest == NULL)
		return error_set(err, ERROR_BUSY,
			"The xorb was removed while it was on its way. Send it again.");
	if (put->inserted) {
		if (record_packs(put, db, err) != 0)
			return -1;
		xorb = placed_xorb(put);
	}
	xorb.promised_ms = clock->wall_ms(clock) + store_parts(put->store)->xet->upload_promise_ms;
	return xorb_row_put(db, &xorb, err);
}

static void committed(struct change *change)
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

static void submit(struct xorb_put *put)
{
	put->change.place = place;
	put->change.apply = apply;
	put->change.done = committed;
	committer_submit(store_committer(put->store), &put->change);
}

static void ingest_is_done(void *owner)
{
	struct xorb_put *const put = owner;
	put->failed = ingest_outcome(put->ingest, &put->error) != 0;
	if (put->failed)
		settle(put);
	else
		submit(put);
}

static void has_room(void *owner)
{
	struct xorb_put *const put = owner;
	if (put->params.room != NULL)
		put->params.room(put->params.owner);
}

static void repeat_is_done(void *owner)
{
	struct xorb_put *const put = owner;
	put->failed = xorb_repeat_outcome(put->repeat, &put->mended, &put->error) != 0;
	if (put->failed)
		settle(put);
	else
		submit(put);
}

/* A pack that gc works on cannot be held: then the bytes are stored anew. What is damaged in it can
 * be mended a little later. */
static int refer_known(struct xorb_put *put, const struct xorb *xorb, struct error *err)
{
	const struct pack_run run = {
		.pack = xorb->pack, .first = xorb->first, .chunks = xorb->count};
	if (pack_store_refer(store_packs(put->store), &xorb->pack))
		return 1;
	return pack_store_is_damaged(store_packs(put->store), &run)
		? error_set(err, ERROR_BUSY,
			  "The garbage collection works on what is stored of the xorb, which is damaged. Send it again.")
		: 0;
}

/* 1 with its pack held, 0, -1. */
static int hold_known(struct xorb_put *put, struct xorb *out, struct error *err)
{
	struct db *const db = store_reader_take(put->store, err);
	if (db == NULL)
		return -1;
	int found = xorb_row_find(db, &put->params.hash, out, err);
	if (found == 1)
		found = refer_known(put, out, err);
	store_reader_give(put->store, db);
	return found;
}

static void open_repeat(struct xorb_put *put, const struct xorb *xorb)
{
	const struct xorb_repeat_params params = {
		.xorb = *xorb,
		.private_codecs = put->params.private_codecs,
		.room = has_room,
		.done = repeat_is_done,
		.owner = put,
	};
	put->repeat = xorb_repeat_open(put->store, &params);
}

static int open_ingest(struct xorb_put *put, struct error *err)
{
	const struct ingest_xorb xorb = {
		.hash = put->params.hash, .private_codecs = put->params.private_codecs};
	const struct ingest_options options = {
		.packs = store_packs(put->store),
		.xorb = &xorb,
		.room = has_room,
		.done = ingest_is_done,
		.owner = put,
	};
	put->ingest = ingest_open(&options, err);
	return put->ingest == NULL ? -1 : 0;
}

struct xorb_put *xorb_put_open(
	struct store *store, const struct xorb_put_params *params, struct error *err)
{
	struct xorb_put *const put = memory_new(sizeof *put);
	put->store = store;
	put->params = *params;
	struct xorb xorb;
	const int known = hold_known(put, &xorb, err);
	if (known == 1)
		open_repeat(put, &xorb);
	if (known == 1 || (known == 0 && open_ingest(put, err) == 0))
		return put;
	xorb_put_free(put);
	return NULL;
}

enum sink_result xorb_put_write(struct xorb_put *put, struct span bytes, struct error *err)
{
	if (put->ingest != NULL)
		return ingest_write(put->ingest, bytes, err);
	return xorb_repeat_write(put->repeat, bytes, err);
}

void xorb_put_finish(struct xorb_put *put)
{
	if (put->ingest != NULL)
		ingest_finish(put->ingest); /* `put` may be gone when this returns */
	else
		xorb_repeat_finish(put->repeat);
}

int xorb_put_outcome(struct xorb_put *put, bool *out_inserted, struct error *err)
{
	if (put->failed) {
		*err = put->error;
		return -1;
	}
	*out_inserted = put->inserted || put->mended;
	return 0;
}

void xorb_put_free(struct xorb_put *put)
{
	if (put == NULL)
		return;
	ingest_free(put->ingest);
	xorb_repeat_free(put->repeat);
	free(put);
}
