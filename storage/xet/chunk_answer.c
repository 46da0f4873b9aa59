/* A look on a helper at the xorb that lies there: its chunks compared, the shard printed. Then the
 * promise, unless the xorb has one that lasts. */
#include "storage/xet/chunk_answer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/digest/blake3_stream.h"
#include "base/memory.h"
#include "chunker/chunk_hash.h"
#include "chunker/shard.h"
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
	struct call call;
	struct chunk_id id;
	struct chunk_place place;
	bool promises;
	bool is_held; /* the pack */
	/* what is to be promised, and until when */
	struct xorb_place xorb;
	int64_t until_ms;
	struct call *promise; /* NULL: none is made */
	struct buffer shard;
};

static bool find_place(struct store *store, const struct chunk_id *id, struct chunk_place *out);
static int unknown(struct error *err);
static enum call_next answer_look(struct call *call, struct error *err);
static int look(struct chunk_answer *answer, struct error *err);
static int find_pack_xorb(struct pack_store *packs, const struct chunk_place *place,
	struct pack_xorb *out, struct error *err);
static struct chunk_entry *load_entries(struct pack_store *packs, const struct pack_id *pack,
	const struct pack_xorb *xorb, struct error *err);
static bool is_right(const struct chunk_answer *answer, const struct pack_xorb *xorb,
	const struct chunk_entry *entries, struct error *err);
static bool judge_promise(struct chunk_answer *answer, const struct chunk_id *hash, int64_t now_ms);
static void print(struct chunk_answer *answer, const struct pack_xorb *xorb,
	const struct chunk_entry *entries, int64_t now_ms);
static void answer_promise(struct call *call);
static void answer_promised(void *owner);
static void answer_let_go(struct call *call);
static void answer_release(struct call *call);

static const struct call_kind answer_kind = {
	.stages = {{.help = answer_look}, {.begin = answer_promise}},
	.settle = answer_let_go,
	.release = answer_release,
};

void chunk_answer_key(const struct store *store, int64_t wall_ms, uint8_t out[32])
{
	char text[64];
	const int len =
		snprintf(text, sizeof text, "chunk answers of day %" PRId64, wall_ms / DAY_MS);
	blake3(store_parts(store)->xet->key, span_of(text, (size_t)len), out);
}

struct call *chunk_answer_call(
	struct store *store, const struct chunk_id *id, bool promises, struct error *err)
{
	struct chunk_place place;
	if (store_parts(store)->xet->answer_promise_ms <= 0 || !find_place(store, id, &place)) {
		unknown(err);
		return NULL;
	}
	struct chunk_answer *const answer =
		call_new(sizeof *answer, &answer_kind, store, 0 /* no texts */);
	answer->id = *id;
	answer->place = place;
	answer->promises = promises;
	buffer_init(&answer->shard, ANSWER_BYTES);
	return &answer->call;
}

void chunk_answer_result(struct call *call, struct buffer *out)
{
	struct chunk_answer *const answer = (struct chunk_answer *)call;
	*out = answer->shard;
	answer->shard = (struct buffer){0};
}

static bool find_place(struct store *store, const struct chunk_id *id, struct chunk_place *out)
{
	return shared_pack_find(store_packs(store), id, out) ||
		chunk_index_find(store_chunk_index(store), id, out);
}

static int unknown(struct error *err)
{
	return error_set(err, ERROR_NOT_FOUND, "The chunk is not known here.");
}

/* Whatever is wrong with the place, the chunk can be sent anew. */
static enum call_next answer_look(struct call *call, struct error *err)
{
	struct chunk_answer *const answer = (struct chunk_answer *)call;
	struct error ignored = {0};
	answer->is_held = pack_store_refer(store_packs(call->store), &answer->place.pack);
	const int result = answer->is_held ? look(answer, &ignored) : -1;
	if (result < 0) {
		unknown(err);
		return CALL_FAILS;
	}
	return result == 1 ? CALL_NEXT : CALL_ENDS;
}

/* With the pack held. 1: the xorb is to be promised; 0: nothing is; -1: the place is wrong in some
 * way. */
static int look(struct chunk_answer *answer, struct error *err)
{
	struct pack_store *const packs = store_packs(answer->call.store);
	const int64_t now_ms = store_now_ms(answer->call.store);
	struct pack_xorb xorb;
	if (find_pack_xorb(packs, &answer->place, &xorb, err) != 0)
		return -1;
	struct chunk_entry *const entries = load_entries(packs, &answer->place.pack, &xorb, err);
	if (entries == NULL)
		return -1;
	int result = -1;
	if (is_right(answer, &xorb, entries, err)) {
		result = judge_promise(answer, &xorb.hash, now_ms) ? 0 : 1;
		print(answer, &xorb, entries, now_ms);
	}
	answer->xorb = (struct xorb_place){.hash = xorb.hash,
		.pack = answer->place.pack,
		.first = xorb.first,
		.count = xorb.count};
	free(entries);
	return result;
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

/* Whether the chunk is what it shall be, and all of the xorb can be read: else the client would not
 * send it. */
static bool is_right(const struct chunk_answer *answer, const struct pack_xorb *xorb,
	const struct chunk_entry *entries, struct error *err)
{
	const struct chunk_place *const place = &answer->place;
	const struct pack_run whole = {
		.pack = place->pack, .first = xorb->first, .chunks = xorb->count};
	return chunk_id_equal(&entries[place->chunk - xorb->first].id, &answer->id) &&
		pack_store_prove_records(store_packs(answer->call.store), &whole, err) == 0;
}

/* Says until when the xorb is to be promised. True: nothing is to be done for that, since it is
 * already, and for at least half of the time that is usual, or since the answer promises
 * nothing. */
static bool judge_promise(struct chunk_answer *answer, const struct chunk_id *hash, int64_t now_ms)
{
	struct store *const store = answer->call.store;
	const int64_t promise_ms = store_parts(store)->xet->answer_promise_ms;
	struct error ignored = {0};
	struct xorb xorb;
	const bool is_known = xorb_find(store, hash, &xorb, &ignored) == 0;
	const bool is_promised =
		!answer->promises || (is_known && xorb.promised_ms >= now_ms + promise_ms / 2);
	answer->until_ms = is_known && is_promised ? xorb.promised_ms : now_ms + promise_ms;
	return is_promised;
}

static void print(struct chunk_answer *answer, const struct pack_xorb *xorb,
	const struct chunk_entry *entries, int64_t now_ms)
{
	struct store *const store = answer->call.store;
	const int64_t slack_ms = store_parts(store)->xet->answer_promise_ms / EXPIRY_QUARTER;
	struct shard_answer facts = {.created_s = now_ms / 1000,
		.expires_s = answer->promises ? (answer->until_ms - slack_ms) / 1000 : 0};
	chunk_answer_key(store, now_ms, facts.key);
	shard_write_answer(&answer->shard, &facts, &xorb->hash, entries, xorb->count);
}

static void answer_promise(struct call *call)
{
	struct chunk_answer *const answer = (struct chunk_answer *)call;
	answer->promise = xorb_promise_call(call->store, &answer->xorb, 1, answer->until_ms);
	call_start(answer->promise, answer_promised, answer);
}

static void answer_promised(void *owner)
{
	struct chunk_answer *const answer = owner;
	struct error err = {0};
	const int result = call_outcome(answer->promise, &err);
	call_resume(&answer->call, result == 0 ? NULL : &err);
}

static void answer_let_go(struct call *call)
{
	struct chunk_answer *const answer = (struct chunk_answer *)call;
	if (answer->is_held)
		pack_store_unrefer(store_packs(call->store), &answer->place.pack);
}

static void answer_release(struct call *call)
{
	struct chunk_answer *const answer = (struct chunk_answer *)call;
	call_free(answer->promise);
	buffer_release(&answer->shard);
}
