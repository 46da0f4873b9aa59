/* A xorb that is unknown at open goes through an ingest, then a change adds its row. A known one
 * goes through a repeat (xorb_repeat.h), then a change renews its promise. The change looks for the
 * row again, because another upload of the same hash may have added it meanwhile. */
#include "storage/xet/xorb_put.h"

#include "storage/core/pack_row.h"
#include "storage/ingest/ingest.h"
#include "storage/xet/xet_options.h"
#include "storage/xet/xorb_repeat.h"
#include "storage/xet/xorb_row.h"

struct xorb_put {
	struct call call;
	struct xorb_put_params params;
	struct ingest *ingest;      /* for an unknown xorb; NULL: it is known */
	struct xorb_repeat *repeat; /* for a known xorb */
	bool inserted;
};

/* For a xorb that was unknown at open. */

/* For a xorb that was known at open. */

static int refer_known_xorb(
	struct store *store, const struct chunk_id *hash, struct xorb *out, struct error *err);
static int refer_pack(struct store *store, const struct xorb *xorb, struct error *err);
static void put_finish_repeat(struct call *call);
static void put_repeated(void *owner);
static int put_apply_known(struct call *call, struct db *db, struct error *err);
static int promise(const struct xorb_put *put, struct db *db, struct xorb *xorb, struct error *err);
static void put_release(struct call *call);
static void put_finish_ingest(struct call *call);
static int put_place(struct call *call, struct error *err);
static int put_apply_new(struct call *call, struct db *db, struct error *err);
static int record_packs(const struct xorb_put *put, struct db *db, struct error *err);
static struct xorb placed_xorb(const struct xorb_put *put);
static void put_settle(struct call *call);
static void open_repeat(struct xorb_put *put, const struct xorb *xorb);
static int open_ingest(struct xorb_put *put, struct error *err);
static void put_has_room(void *owner);
static void put_ingested(void *owner);

static const struct call_kind new_kind = {
	.stages = {{.begin = put_finish_ingest}, {.place = put_place, .apply = put_apply_new}},
	.settle = put_settle,
	.release = put_release,
};

static const struct call_kind known_kind = {
	.stages = {{.begin = put_finish_repeat}, {.apply = put_apply_known}},
	.release = put_release,
};

struct xorb_put *xorb_put_open(
	struct store *store, const struct xorb_put_params *params, struct error *err)
{
	struct xorb xorb;
	const int known = refer_known_xorb(store, &params->hash, &xorb, err);
	if (known < 0)
		return NULL;
	struct xorb_put *const put = call_new(
		sizeof(*put), known == 1 ? &known_kind : &new_kind, store, 0 /* no texts */);
	put->params = *params;
	if (known == 1) {
		open_repeat(put, &xorb);
	} else if (open_ingest(put, err) != 0) {
		call_free(&put->call);
		return NULL;
	}
	return put;
}

enum sink_result xorb_put_write(struct xorb_put *put, struct span bytes, struct error *err)
{
	if (put->ingest != NULL)
		return ingest_write(put->ingest, bytes, err);
	return xorb_repeat_write(put->repeat, bytes, err);
}

struct call *xorb_put_call(struct xorb_put *put)
{
	return &put->call;
}

bool xorb_put_inserted(const struct xorb_put *put)
{
	return put->inserted || (put->repeat != NULL && xorb_repeat_mended(put->repeat));
}

/* 1: the xorb is known, and its pack is referred. 0: it must be stored. -1. */
static int refer_known_xorb(
	struct store *store, const struct chunk_id *hash, struct xorb *out, struct error *err)
{
	struct db *const db = store_reader_take(store, err);
	if (db == NULL)
		return -1;
	int found = xorb_row_find(db, hash, out, err);
	if (found == 1)
		found = refer_pack(store, out, err);
	store_reader_give(store, db);
	return found;
}

/* 1: the pack is referred. 0: gc works on the pack, and the bytes must be stored again. -1: the
 * same for a damaged xorb, which can be mended only once gc has finished. */
static int refer_pack(struct store *store, const struct xorb *xorb, struct error *err)
{
	const struct pack_run run = {
		.pack = xorb->pack, .first = xorb->first, .chunks = xorb->count};
	if (pack_store_refer(store_packs(store), &xorb->pack))
		return 1;
	return pack_store_is_damaged(store_packs(store), &run)
		? error_set(err, ERROR_BUSY,
			  "The stored bytes of the xorb are damaged, and the garbage collection is working on their pack. Send it again.")
		: 0;
}

static void put_finish_repeat(struct call *call)
{
	struct xorb_put *const put = (struct xorb_put *)call;
	ASSERT(put->repeat != NULL && put->ingest == NULL);
	call_start(xorb_repeat_call(put->repeat), put_repeated, put);
}

static void put_repeated(void *owner)
{
	struct xorb_put *const put = owner;
	struct error err = {0};
	const int result = call_outcome(xorb_repeat_call(put->repeat), &err);
	call_resume(&put->call, result == 0 ? NULL : &err);
}

static int put_apply_known(struct call *call, struct db *db, struct error *err)
{
	const struct xorb_put *const put = (const struct xorb_put *)call;
	struct xorb xorb;
	const int found = xorb_row_find(db, &put->params.hash, &xorb, err);
	if (found == 0)
		return error_set(
			err, ERROR_BUSY, "The xorb was removed during its upload. Send it again.");
	return found < 0 ? -1 : promise(put, db, &xorb, err);
}

static int promise(const struct xorb_put *put, struct db *db, struct xorb *xorb, struct error *err)
{
	struct store *const store = put->call.store;
	xorb->promised_ms = store_now_ms(store) + store_parts(store)->xet->upload_promise_ms;
	return xorb_row_put(db, xorb, err);
}

static void put_release(struct call *call)
{
	const struct xorb_put *const put = (const struct xorb_put *)call;
	ingest_free(put->ingest);
	if (put->repeat != NULL)
		call_free(xorb_repeat_call(put->repeat));
}

static void put_finish_ingest(struct call *call)
{
	const struct xorb_put *const put = (const struct xorb_put *)call;
	ASSERT(put->ingest != NULL && put->repeat == NULL);
	ingest_finish(put->ingest);
}

static int put_place(struct call *call, struct error *err)
{
	return ingest_place(((struct xorb_put *)call)->ingest, err);
}

static int put_apply_new(struct call *call, struct db *db, struct error *err)
{
	struct xorb_put *const put = (struct xorb_put *)call;
	struct xorb xorb;
	const int found = xorb_row_find(db, &put->params.hash, &xorb, err);
	if (found < 0)
		return -1;
	put->inserted = found == 0;
	if (put->inserted) {
		if (record_packs(put, db, err) != 0)
			return -1;
		xorb = placed_xorb(put);
	}
	return promise(put, db, &xorb, err);
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
	ASSERT(part->segment_count == 1); /* an ingest of a xorb neither finds nor splits chunks */
	return (struct xorb){.hash = put->params.hash,
		.pack = part->segments->pack,
		.first = part->segments->first,
		.count = part->segments->count};
}

static void put_settle(struct call *call)
{
	const struct xorb_put *const put = (const struct xorb_put *)call;
	if (!call->failed && put->inserted)
		ingest_committed(put->ingest);
	if (call->change.in_doubt)
		ingest_in_doubt(put->ingest);
}

static void open_repeat(struct xorb_put *put, const struct xorb *xorb)
{
	const struct xorb_repeat_params params = {
		.xorb = *xorb,
		.private_codecs = put->params.private_codecs,
		.room = put->params.room,
		.owner = put->params.owner,
	};
	put->repeat = xorb_repeat_open(put->call.store, &params);
}

static int open_ingest(struct xorb_put *put, struct error *err)
{
	const struct ingest_xorb xorb = {
		.hash = put->params.hash, .private_codecs = put->params.private_codecs};
	const struct ingest_options options = {
		.packs = store_packs(put->call.store),
		.xorb = &xorb,
		.room = put_has_room,
		.done = put_ingested,
		.owner = put,
	};
	put->ingest = ingest_open(&options, err);
	return put->ingest == NULL ? -1 : 0;
}

static void put_has_room(void *owner)
{
	const struct xorb_put *const put = owner;
	if (put->params.room != NULL)
		put->params.room(put->params.owner);
}

static void put_ingested(void *owner)
{
	struct xorb_put *const put = owner;
	struct error err = {0};
	const int result = ingest_outcome(put->ingest, &err);
	call_resume(&put->call, result == 0 ? NULL : &err);
}
