/* start: is there a place? --helper: the xorb, its chunks compared, the shard printed--> promise, unless the xorb has one that lasts --> done */
#include "storage/xet/chunk_answer.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/digest/blake3_stream.h"
#include "base/memory.h"
#include "chunker/chunk_hash.h"
#include "chunker/shard.h"
#include "storage/core/store.h"
#include "storage/packs/pack_store_parts.h"
#include "storage/packs/xorb_view.h"
#include "storage/xet/xet_options.h"
#include "storage/xet/xorb_promise.h"

enum {
	ANSWER_BYTES = SHARD_RECORD_BYTES * (XORB_MAX_CHUNKS + 4) + SHARD_FOOTER_BYTES,
	/* an answer ends a quarter of its time before the promise: what was begun with it comes to
	 * its end */
	EXPIRY_QUARTER = 4,
	DAY_MS = 24 * 60 * 60 * 1000
};

struct chunk_answer {
	struct helper_lane lane;
	struct helper_job job;
	struct store *store;
	struct chunk_id id;
	struct chunk_place place;
	bool promises;
	struct xorb_promise *promise; /* NULL: one lasts already, or none is made */
	_Atomic int awaited;          /* the promise, and that it is noted here */
	struct buffer shard;
	bool failed;
	struct error error;
	void (*done)(void *owner);
	void *owner;
};

void chunk_answer_key(const struct store *store, int64_t wall_ms, uint8_t out[32])
{
	char text[64];
	const int len =
		snprintf(text, sizeof text, "chunk answers of day %" PRId64, wall_ms / DAY_MS);
	blake3(store_parts(store)->xet->key, span_of(text, (size_t)len), out);
}

static int unknown(struct error *err)
{
	return error_set(err, ERROR_NOT_FOUND, "The chunk is not known here.");
}

/* The chunks of the xorb, which must all be there: clients count from its beginning. */
static struct chunk_entry *load_entries(struct pack_store *packs, const struct pack_id *pack,
	const struct pack_xorb *xorb, struct error *err)
{
	struct pack_run run = {.pack = *pack, .first = xorb->first, .chunks = xorb->count};
	struct chunk_entry *const entries = memory_new_array(xorb->count, sizeof *entries);
	for (size_t at = 0; at < xorb->count;) {
		size_t count = 0;
		if (pack_store_chunk_entries(packs, &run, entries + at, run.chunks, &count, err) !=
			0) {
			free(entries);
			return NULL;
		}
		at += count;
		run.first += (uint32_t)count;
		run.chunks -= (uint32_t)count;
	}
	return entries;
}

static int find_pack_xorb(struct pack_store *packs, const struct chunk_place *place,
	struct pack_xorb *out, struct error *err)
{
	struct xorb_view *const view = xorb_view_open(packs, &place->pack, err);
	if (view == NULL)
		return -1;
	const int found = xorb_view_find(view, place->chunk, out, err);
	xorb_view_close(view);
	return found;
}

static void print(struct chunk_answer *answer, const struct pack_xorb *xorb,
	const struct chunk_entry *entries, int64_t promised_ms, int64_t now_ms)
{
	const int64_t slack_ms =
		store_parts(answer->store)->xet->answer_promise_ms / EXPIRY_QUARTER;
	struct shard_answer facts = {.created_s = now_ms / 1000,
		.expires_s = answer->promises ? (promised_ms - slack_ms) / 1000 : 0};
	chunk_answer_key(answer->store, now_ms, facts.key);
	shard_write_answer(&answer->shard, &facts, &xorb->hash, entries, xorb->count);
}

/* out_until_ms: how long the xorb is to be promised; *out_is_promised: nothing is to be done for
 * that, since it is already, and for at least half of the time that is usual, or since the answer
 * promises nothing. */
static void judge_promise(const struct chunk_answer *answer, const struct chunk_id *hash,
	int64_t now_ms, int64_t *out_until_ms, bool *out_is_promised)
{
	const int64_t promise_ms = store_parts(answer->store)->xet->answer_promise_ms;
	struct error ignored = {0};
	struct xorb xorb;
	const bool is_known = xorb_find(answer->store, hash, &xorb, &ignored) == 0;
	*out_is_promised =
		!answer->promises || (is_known && xorb.promised_ms >= now_ms + promise_ms / 2);
	*out_until_ms = is_known && *out_is_promised ? xorb.promised_ms : now_ms + promise_ms;
}

static void settle(struct chunk_answer *answer)
{
	answer->done(answer->owner); /* `answer` may be gone when this returns */
}

static void come(void *owner)
{
	struct chunk_answer *const answer = owner;
	if (atomic_fetch_sub(&answer->awaited, 1) == 1)
		settle(answer);
}

static void promise(struct chunk_answer *answer, const struct xorb_place *place, int64_t until_ms)
{
	atomic_store(&answer->awaited, 2);
	answer->promise = xorb_promise_start(answer->store, place, 1, until_ms, come, answer);
	come(answer);
}

/* With the pack held. *out_place: what is to be promised; false when nothing is. */
static int look(struct chunk_answer *answer, struct xorb_place *out_place, int64_t *out_until_ms,
	bool *out_is_promised, struct error *err)
{
	struct pack_store *const packs = store_packs(answer->store);
	const struct clock_source *const clock = store_clock(answer->store);
	const int64_t now_ms = clock->wall_ms(clock);
	struct pack_xorb xorb;
	if (find_pack_xorb(packs, &answer->place, &xorb, err) != 0)
		return -1;
	struct chunk_entry *const entries = load_entries(packs, &answer->place.pack, &xorb, err);
	if (entries == NULL)
		return -1;
	const struct pack_run whole = {
		.pack = answer->place.pack, .first = xorb.first, .chunks = xorb.count};
	const bool is_right =
		chunk_id_equal(&entries[answer->place.chunk - xorb.first].id, &answer->id) &&
		pack_store_prove_records(packs, &whole, err) ==
			0; /* else the client would not send it */
	*out_place = (struct xorb_place){.hash = xorb.hash,
		.pack = answer->place.pack,
		.first = xorb.first,
		.count = xorb.count};
	judge_promise(answer, &xorb.hash, now_ms, out_until_ms, out_is_promised);
	if (is_right)
		print(answer, &xorb, entries, *out_until_ms, now_ms);
	free(entries);
	return is_right ? 0 : unknown(err);
}

/* Whatever is wrong with the place, the chunk can be sent anew. */
static void fail(struct chunk_answer *answer)
{
	answer->failed = true;
	unknown(&answer->error);
	settle(answer);
}

static void run(struct helper_job *job)
{
	struct chunk_answer *const answer =
		(struct chunk_answer *)((uint8_t *)job - offsetof(struct chunk_answer, job));
	struct pack_store *const packs = store_packs(answer->store);
	const struct pack_id pack = answer->place.pack;
	struct xorb_place place;
	struct error ignored = {0};
	int64_t until_ms;
	bool is_promised = false;
	if (!pack_store_refer(packs, &pack)) {
		fail(answer);
		return;
	}
	if (look(answer, &place, &until_ms, &is_promised, &ignored) != 0)
		fail(answer);
	else if (is_promised)
		settle(answer);
	else
		promise(answer, &place, until_ms);
	pack_store_unrefer(packs, &pack);
}

static bool find_place(struct store *store, const struct chunk_id *id, struct chunk_place *out)
{
	return shared_pack_find(store_packs(store), id, out) ||
		chunk_index_find(store_chunk_index(store), id, out);
}

struct chunk_answer *chunk_answer_start(struct store *store, const struct chunk_id *id,
	bool promises, void (*done)(void *owner), void *owner, struct error *err)
{
	struct chunk_place place;
	if (store_parts(store)->xet->answer_promise_ms <= 0 || !find_place(store, id, &place)) {
		unknown(err);
		return NULL;
	}
	struct chunk_answer *const answer = memory_new(sizeof *answer);
	answer->store = store;
	answer->id = *id;
	answer->place = place;
	answer->promises = promises;
	answer->done = done;
	answer->owner = owner;
	answer->job.run = run;
	buffer_init(&answer->shard, ANSWER_BYTES);
	helpers_submit(store_helpers(store), &answer->lane, &answer->job);
	return answer;
}

int chunk_answer_outcome(struct chunk_answer *answer, struct buffer *out, struct error *err)
{
	if (answer->failed) {
		*err = answer->error;
		return -1;
	}
	if (answer->promise != NULL && xorb_promise_outcome(answer->promise, err) != 0)
		return -1;
	*out = answer->shard;
	answer->shard = (struct buffer){0};
	return 0;
}

void chunk_answer_free(struct chunk_answer *answer)
{
	if (answer == NULL)
		return;
	xorb_promise_free(answer->promise);
	buffer_release(&answer->shard);
	free(answer);
}
