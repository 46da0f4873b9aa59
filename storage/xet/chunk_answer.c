/* Two stages: a helper looks at the xorb that the chunk's place leads to, compares its chunks,
 * proves its records and prints the shard; then the xorb is promised, unless it already is for long
 * enough. The maker only looks for the place, in memory and the chunk index, because clients ask
 * for each file that they send and the answer is mostly no. */
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
	/* The answer expires before the promise does, by this part of the promise's time, so that
	 * an upload that began with the answer can end. */
	ANSWER_SLACK_PART = 4,
	DAY_MS = 24 * 60 * 60 * 1000
};

struct chunk_answer {
	struct call call;
	struct chunk_id id;
	struct chunk_place place;
	bool promises;
	bool is_referred; /* place.pack */
	/* the xorb to promise, and the end of its promise */
	struct xorb_place xorb;
	int64_t until_ms;
	struct call *promise; /* NULL: no new promise is needed */
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
static bool needs_promise(struct chunk_answer *answer, const struct chunk_id *hash, int64_t now_ms);
static void print(struct chunk_answer *answer, const struct pack_xorb *xorb,
	const struct chunk_entry *entries, int64_t now_ms);
static void answer_promise(struct call *call);
static void answer_promised(void *owner);
static void answer_unrefer(struct call *call);
static void answer_release(struct call *call);

static const struct call_kind answer_kind = {
	.stages = {{.help = answer_look}, {.begin = answer_promise}},
	.settle = answer_unrefer,
	.release = answer_release,
};

void chunk_answer_key(const struct store *store, int64_t wall_ms, uint8_t out[32])
{
	char text[64];
	const int len =
		snprintf(text, sizeof(text), "chunk answers of day %" PRId64, wall_ms / DAY_MS);
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
		call_new(sizeof(*answer), &answer_kind, store, 0 /* no texts */);
	answer->id = *id;
	answer->place = place;
	answer->promises = promises;
	buffer_init(&answer->shard, ANSWER_BYTES);
	return &answer->call;
}

void chunk_answer_result(struct call *call, struct buffer *out)
{
	struct chunk_answer *const answer = (struct chunk_answer *)call;
	ASSERT(!call->failed);
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

/* Any failure becomes not_found: the client then sends the chunk. */
static enum call_next answer_look(struct call *call, struct error *err)
{
	struct chunk_answer *const answer = (struct chunk_answer *)call;
	struct error ignored = {0};
	answer->is_referred = pack_store_refer(store_packs(call->store), &answer->place.pack);
	const int result = answer->is_referred ? look(answer, &ignored) : -1;
	if (result < 0) {
		unknown(err);
		return CALL_FAILS;
	}
	return result == 1 ? CALL_NEXT : CALL_ENDS;
}

/* The pack must be referred. 1: the xorb must be promised; 0: no promise is needed; -1: the place
 * is wrong in some way. */
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
		result = needs_promise(answer, &xorb.hash, now_ms) ? 1 : 0;
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

/* Loads all chunks of the xorb. None may be missing, because clients count from its first one. */
static struct chunk_entry *load_entries(struct pack_store *packs, const struct pack_id *pack,
	const struct pack_xorb *xorb, struct error *err)
{
	struct pack_run run = {.pack = *pack, .first = xorb->first, .chunks = xorb->count};
	struct chunk_entry *const entries = memory_new_array(xorb->count, sizeof(*entries));
	for (size_t at = 0; at < xorb->count;) {
		size_t count = 0;
		if (pack_store_chunk_entries(packs, &run, entries + at, run.chunks, &count, err) !=
			0) {
			free(entries);
			return NULL;
		}
		ASSERT(count >= 1 && count <= run.chunks);
		at += count;
		run.first += (uint32_t)count;
		run.chunks -= (uint32_t)count;
	}
	return entries;
}

/* Whether the chunk at the place is the right one and the whole xorb can be read. Otherwise the
 * client must send the chunk. */
static bool is_right(const struct chunk_answer *answer, const struct pack_xorb *xorb,
	const struct chunk_entry *entries, struct error *err)
{
	const struct chunk_place *const place = &answer->place;
	const struct pack_run whole = {
		.pack = place->pack, .first = xorb->first, .chunks = xorb->count};
	ASSERT(place->chunk >= xorb->first && place->chunk - xorb->first < xorb->count);
	return chunk_id_equal(&entries[place->chunk - xorb->first].id, &answer->id) &&
		pack_store_prove_records(store_packs(answer->call.store), &whole, err) == 0;
}

/* Sets the end of the promise. Returns whether the xorb must be promised again: not if the answer
 * promises nothing, nor if the present promise lasts for at least half of the usual time. */
static bool needs_promise(struct chunk_answer *answer, const struct chunk_id *hash, int64_t now_ms)
{
	struct store *const store = answer->call.store;
	const int64_t promise_ms = store_parts(store)->xet->answer_promise_ms;
	struct error ignored = {0};
	struct xorb xorb;
	const bool is_known = xorb_find(store, hash, &xorb, &ignored) == 0;
	const bool is_promised =
		!answer->promises || (is_known && xorb.promised_ms >= now_ms + promise_ms / 2);
	answer->until_ms = is_known && is_promised ? xorb.promised_ms : now_ms + promise_ms;
	return !is_promised;
}

static void print(struct chunk_answer *answer, const struct pack_xorb *xorb,
	const struct chunk_entry *entries, int64_t now_ms)
{
	struct store *const store = answer->call.store;
	const int64_t slack_ms = store_parts(store)->xet->answer_promise_ms / ANSWER_SLACK_PART;
	struct shard_answer facts = {.created_s = now_ms / 1000,
		.expires_s = answer->promises ? (answer->until_ms - slack_ms) / 1000 : 0};
	chunk_answer_key(store, now_ms, facts.key);
	shard_write_answer(&answer->shard, &facts, &xorb->hash, entries, xorb->count);
}

static void answer_promise(struct call *call)
{
	struct chunk_answer *const answer = (struct chunk_answer *)call;
	ASSERT(answer->promises && answer->is_referred);
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

static void answer_unrefer(struct call *call)
{
	struct chunk_answer *const answer = (struct chunk_answer *)call;
	if (answer->is_referred)
		pack_store_unrefer(store_packs(call->store), &answer->place.pack);
}

static void answer_release(struct call *call)
{
	struct chunk_answer *const answer = (struct chunk_answer *)call;
	call_free(answer->promise);
	buffer_release(&answer->shard);
}
