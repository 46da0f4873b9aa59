/* From start until the change is through the packs are held: gc, which waits for that, neither
 * removes nor compacts them, and sees the rows. */
#include "storage/xet/xorb_promise.h"

#include <stdlib.h>

#include "base/memory.h"
#include "storage/core/committer.h"
#include "storage/core/store.h"
#include "storage/packs/pack_damage.h"
#include "storage/xet/xet_options.h"
#include "storage/xet/xorb_row.h"

struct xorb_promise {
	struct change change; /* first */
	struct helper_lane lane;
	struct helper_job job;
	struct store *store;
	struct xorb_place *places;
	size_t count;
	size_t held; /* packs of the first places */
	int64_t until_ms;
	bool failed;
	struct error error;
	void (*done)(void *owner);
	void *owner;
};

static int apply(struct change *change, struct db *db, struct error *err)
{
	const struct xorb_promise *const promise = (const struct xorb_promise *)change;
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

static void let_go(struct xorb_promise *promise)
{
	for (size_t i = 0; i < promise->held; i++)
		pack_store_unrefer(store_packs(promise->store), &promise->places[i].pack);
	promise->held = 0;
}

static void committed(struct change *change)
{
	struct xorb_promise *const promise = (struct xorb_promise *)change;
	promise->failed = change->failed;
	promise->error = change->error;
	if (!change->in_doubt) /* else the rows may come back, and the next start judges */
		let_go(promise);
	promise->done(promise->owner);
}

/* Held first, looked at then: what is whole now stays so. */
static int hold(struct xorb_promise *promise, const struct xorb_place *place, struct error *err)
{
	struct pack_store *const packs = store_packs(promise->store);
	bool is_whole = false;
	uint64_t bytes;
	if (!pack_store_refer(packs, &place->pack))
		return error_set(err, ERROR_NOT_FOUND, "The pack of the xorb is going away.");
	promise->held++;
	if (xorb_place_measure(packs, place, &is_whole, &bytes, err) != 0)
		return -1;
	return is_whole ? 0 : error_set(err, ERROR_NOT_FOUND, "Chunks of the xorb are gone.");
}

static struct xorb_promise *promise_new(struct store *store, const struct xorb_place *places,
	size_t count, int64_t until_ms, void (*done)(void *owner), void *owner)
{
	ASSERT(count >= 1 && count <= XORB_PROMISE_MAX);
	struct xorb_promise *const promise = memory_new(sizeof *promise);
	promise->store = store;
	promise->places = memory_copy(places, count * sizeof *places);
	promise->count = count;
	promise->until_ms = until_ms;
	promise->done = done;
	promise->owner = owner;
	promise->change.apply = apply;
	promise->change.done = committed;
	return promise;
}

/* `promise` may be gone when this returns. */
static void submit(struct xorb_promise *promise)
{
	if (!promise->failed) {
		committer_submit(store_committer(promise->store), &promise->change);
		return;
	}
	let_go(promise);
	promise->done(promise->owner);
}

struct xorb_promise *xorb_promise_start(struct store *store, const struct xorb_place *places,
	size_t count, int64_t until_ms, void (*done)(void *owner), void *owner)
{
	struct xorb_promise *const promise =
		promise_new(store, places, count, until_ms, done, owner);
	for (size_t i = 0; i < count && !promise->failed; i++)
		promise->failed = hold(promise, &promise->places[i], &promise->error) != 0;
	submit(promise);
	return promise;
}

/* Who is told that a xorb is here does not send it: so every record of it is read. */
static int prove(struct xorb_promise *promise, struct error *err)
{
	const struct xorb_place *const place = &promise->places[0];
	const struct pack_run run = {
		.pack = place->pack, .first = place->first, .chunks = place->count};
	if (hold(promise, place, err) != 0)
		return -1;
	if (pack_store_check_records(store_packs(promise->store), &run, err) == 0)
		return 0;
	return pack_damage_is(err)
		? error_set(err, ERROR_NOT_FOUND,
			  "What is stored of the xorb is damaged: send it again.")
		: -1;
}

static void run_renewal(struct helper_job *job)
{
	struct xorb_promise *const promise =
		(struct xorb_promise *)((uint8_t *)job - offsetof(struct xorb_promise, job));
	promise->failed = prove(promise, &promise->error) != 0;
	submit(promise);
}

struct xorb_promise *xorb_promise_renew(struct store *store, const struct chunk_id *hash,
	void (*done)(void *owner), void *owner, struct error *err)
{
	const struct clock_source *const clock = store_clock(store);
	struct xorb xorb;
	if (xorb_find(store, hash, &xorb, err) != 0)
		return NULL;
	const struct xorb_place place = {
		.hash = *hash, .pack = xorb.pack, .first = xorb.first, .count = xorb.count};
	const int64_t until_ms = clock->wall_ms(clock) + store_parts(store)->xet->upload_promise_ms;
	struct xorb_promise *const promise = promise_new(store, &place, 1, until_ms, done, owner);
	promise->job.run = run_renewal;
	helpers_submit(store_helpers(store), &promise->lane, &promise->job);
	return promise;
}

int xorb_promise_outcome(const struct xorb_promise *promise, struct error *err)
{
	if (promise->failed)
		*err = promise->error;
	return promise->failed ? -1 : 0;
}

void xorb_promise_free(struct xorb_promise *promise)
{
	if (promise == NULL)
		return;
	free(promise->places);
	free(promise);
}
