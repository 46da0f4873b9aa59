/* Both calls have two stages: a helper refers the packs and looks at the xorbs, then a change
 * writes the rows. The packs stay referred until the change is done. gc waits for that before it
 * deletes or compacts a pack, and then sees the rows. */
#include "storage/xet/xorb_promise.h"

#include <string.h>

#include "storage/packs/pack_damage.h"
#include "storage/xet/xet_options.h"
#include "storage/xet/xorb_row.h"

struct xorb_promise {
	struct call call;
	int64_t until_ms;
	size_t referred; /* the packs of so many first places */
	size_t count;
	struct xorb_place places[];
};

static struct call *promise_new(struct store *store, const struct call_kind *kind,
	const struct xorb_place *places, size_t count, int64_t until_ms);
static enum call_next promise_refer(struct call *call, struct error *err);
static int refer(struct xorb_promise *promise, const struct xorb_place *place, struct error *err);
static int promise_apply(struct call *call, struct db *db, struct error *err);
static void promise_unrefer(struct call *call);
static enum call_next promise_prove(struct call *call, struct error *err);

static const struct call_kind promise_kind = {
	.stages = {{.help = promise_refer}, {.apply = promise_apply}},
	.settle = promise_unrefer,
};

static const struct call_kind renew_kind = {
	.stages = {{.help = promise_prove}, {.apply = promise_apply}},
	.settle = promise_unrefer,
};

struct call *xorb_promise_call(
	struct store *store, const struct xorb_place *places, size_t count, int64_t until_ms)
{
	return promise_new(store, &promise_kind, places, count, until_ms);
}

struct call *xorb_promise_renew_call(
	struct store *store, const struct chunk_id *hash, struct error *err)
{
	struct xorb xorb;
	if (xorb_find(store, hash, &xorb, err) != 0)
		return NULL;
	const struct xorb_place place = {
		.hash = *hash, .pack = xorb.pack, .first = xorb.first, .count = xorb.count};
	const int64_t until_ms = store_now_ms(store) + store_parts(store)->xet->upload_promise_ms;
	return promise_new(store, &renew_kind, &place, 1, until_ms);
}

static struct call *promise_new(struct store *store, const struct call_kind *kind,
	const struct xorb_place *places, size_t count, int64_t until_ms)
{
	ASSERT(count >= 1 && count <= XORB_PROMISE_MAX);
	const size_t bytes = count * sizeof(*places);
	struct xorb_promise *const promise =
		call_new(sizeof(*promise) + bytes, kind, store, 0 /* no texts */);
	promise->until_ms = until_ms;
	promise->count = count;
	memcpy(promise->places, places, bytes);
	return &promise->call;
}

static enum call_next promise_refer(struct call *call, struct error *err)
{
	struct xorb_promise *const promise = (struct xorb_promise *)call;
	for (size_t i = 0; i < promise->count; i++)
		if (refer(promise, &promise->places[i], err) != 0)
			return CALL_FAILS;
	return CALL_NEXT;
}

/* Refers the pack before it measures the place, so that a whole xorb stays whole. */
static int refer(struct xorb_promise *promise, const struct xorb_place *place, struct error *err)
{
	struct pack_store *const packs = store_packs(promise->call.store);
	bool is_whole = false;
	uint64_t bytes;
	if (!pack_store_refer(packs, &place->pack))
		return error_set(err, ERROR_NOT_FOUND, "The pack of the xorb is being deleted.");
	promise->referred++;
	ASSERT(promise->referred <= promise->count);
	if (xorb_place_measure(packs, place, &is_whole, &bytes, err) != 0)
		return -1;
	return is_whole ? 0 : error_set(err, ERROR_NOT_FOUND, "Chunks of the xorb were deleted.");
}

static int promise_apply(struct call *call, struct db *db, struct error *err)
{
	const struct xorb_promise *const promise = (const struct xorb_promise *)call;
	ASSERT(promise->referred == promise->count);
	for (size_t i = 0; i < promise->count; i++) {
		const struct xorb_place *const place = &promise->places[i];
		const struct xorb xorb = {.hash = place->hash,
			.pack = place->pack,
			.first = place->first,
			.count = place->count,
			.promised_ms = promise->until_ms};
		if (xorb_row_put(db, &xorb, err) != 0)
			return -1;
	}
	return 0;
}

/* After a change in doubt the rows may come back: the packs stay referred until the next start. */
static void promise_unrefer(struct call *call)
{
	struct xorb_promise *const promise = (struct xorb_promise *)call;
	for (size_t i = 0; i < promise->referred && !call->change.in_doubt; i++)
		pack_store_unrefer(store_packs(call->store), &promise->places[i].pack);
	promise->referred = 0;
}

/* Reads every record, because a client that gets the promise does not send the xorb. */
static enum call_next promise_prove(struct call *call, struct error *err)
{
	struct xorb_promise *const promise = (struct xorb_promise *)call;
	const struct xorb_place *const place = &promise->places[0];
	const struct pack_run run = {
		.pack = place->pack, .first = place->first, .chunks = place->count};
	if (refer(promise, place, err) != 0)
		return CALL_FAILS;
	if (pack_store_check_records(store_packs(call->store), &run, err) == 0)
		return CALL_NEXT;
	if (pack_damage_is(err))
		error_set(err, ERROR_NOT_FOUND,
			"The stored bytes of the xorb are damaged: send it again.");
	return CALL_FAILS;
}
