/* The owner and each job on a helper have a reference, and the one that gives up the last reference
 * destroys the ingest. So ingest_free never waits. `pending` counts the work that `done` waits for:
 * the jobs and ingest_finish itself. A failure is kept, and ends the stream at its next write or in
 * the outcome. */
#include "storage/ingest/ingest_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"

static void ingest_unreference(struct ingest *ingest);
static void ingest_destroy(struct ingest *ingest);
static void load_index(struct ingest *ingest);
static void ingest_load_run(struct helper_job *job);
static int ingest_push(struct ingest *ingest, struct span bytes, struct error *err);
static int ingest_end_chunk(struct ingest *ingest, struct error *err);
static int ingest_end_xorb(struct ingest *ingest, struct error *err);
static int ingest_end_stream(struct ingest *ingest, struct error *err);

struct ingest *ingest_open(const struct ingest_options *options, struct error *err)
{
	ASSERT(options->packs != NULL && options->room != NULL && options->done != NULL);
	if (disk_floor_check(options->packs->floor, err) != 0)
		return NULL;
	struct ingest *const ingest = memory_new(sizeof(*ingest));
	ingest->options = *options;
	ingest->store = options->packs;
	ingest->references = 1;
	lock_init(&ingest->lock, LOCK_INGEST);
	if (options->xorb != NULL)
		ingest_records_init(ingest, options->xorb);
	else
		ingest->chunks = chunk_stream_new(ingest_take_chunk, ingest);
	part_builder_init(&ingest->part_builder);
	ingest->part_builder.has_few_segments = options->few_segments;
	dedup_init(&ingest->dedup, ingest->store);
	xorb_builder_init(&ingest->xorb);
	random_bytes(ingest->pack.bytes, sizeof(ingest->pack.bytes));
	ingest_digest_init(ingest);
	return ingest;
}

void ingest_free(struct ingest *ingest)
{
	if (ingest == NULL)
		return;
	lock_enter(&ingest->lock);
	atomic_store(&ingest->abandoned, true);
	lock_leave(&ingest->lock);
	ingest_digest_hurry(ingest);
	ingest_unreference(ingest);
}

void ingest_fail(struct ingest *ingest, const struct error *err)
{
	lock_enter(&ingest->lock);
	if (!ingest->failed) {
		ingest->failed = true;
		ingest->error = *err;
	}
	lock_leave(&ingest->lock);
}

bool ingest_has_failed(struct ingest *ingest)
{
	lock_enter(&ingest->lock);
	const bool failed = ingest->failed;
	lock_leave(&ingest->lock);
	return failed;
}

void ingest_job_begins(struct ingest *ingest)
{
	lock_enter(&ingest->lock);
	ingest->references++;
	ingest->pending++;
	lock_leave(&ingest->lock);
}

void ingest_job_ends(struct ingest *ingest)
{
	lock_enter(&ingest->lock);
	ASSERT(ingest->pending > 0);
	ingest->pending--;
	const bool is_done =
		ingest->pending == 0 && ingest->finished && !atomic_load(&ingest->abandoned);
	lock_leave(&ingest->lock);
	if (is_done) {
		ingest_digest_results(ingest);
		ingest->options.done(ingest->options.owner);
	}
	ingest_unreference(ingest);
}

bool ingest_is_full(struct ingest *ingest)
{
	lock_enter(&ingest->lock);
	const bool is_full = ingest->blocks_out >= INGEST_BLOCKS_MAX ||
		ingest->drains_out >= INGEST_DRAINS_MAX ||
		ingest->checks_out >= INGEST_CHECKS_MAX || ingest->is_loading;
	ingest->wants_room = is_full;
	lock_leave(&ingest->lock);
	return is_full;
}

/* The callback runs under the lock. ingest_free takes the lock, so `room` never runs after it. */
void ingest_offer_room(struct ingest *ingest)
{
	lock_assert_held(&ingest->lock);
	if (!ingest->wants_room || ingest->blocks_out > INGEST_BLOCKS_ROOM ||
		ingest->drains_out > INGEST_DRAINS_ROOM ||
		ingest->checks_out > INGEST_CHECKS_ROOM || ingest->is_loading)
		return;
	ingest->wants_room = false;
	if (!atomic_load(&ingest->abandoned))
		ingest->options.room(ingest->options.owner);
}

/* The next write waits until a helper has loaded the index. */
static void load_index(struct ingest *ingest)
{
	ingest->dedup.lacks_index = false;
	ingest_job_begins(ingest);
	lock_enter(&ingest->lock);
	ingest->is_loading = true;
	lock_leave(&ingest->lock);
	ingest->load.run = ingest_load_run;
	helpers_submit(ingest->store->helpers, &ingest->load_lane, &ingest->load);
}

static void ingest_load_run(struct helper_job *job)
{
	struct ingest *const ingest =
		(struct ingest *)((uint8_t *)job - offsetof(struct ingest, load));
	struct pack_cache *const cache = ingest->store->cache;
	struct error ignored = {0}; /* then the chunks are stored again */
	struct pack *const pinned = pack_cache_pin(cache, &ingest->dedup.far.pack, false, &ignored);
	if (pinned != NULL)
		pack_cache_unpin(cache, pinned);
	lock_enter(&ingest->lock);
	ingest->is_loading = false;
	ingest_offer_room(ingest);
	lock_leave(&ingest->lock);
	ingest_job_ends(ingest);
}

enum sink_result ingest_write(struct ingest *ingest, struct span bytes, struct error *err)
{
	ASSERT(!ingest->finished); /* only this thread sets it */
	if (ingest_has_failed(ingest)) {
		ingest_outcome(ingest, err);
		return SINK_FAILED;
	}
	if (ingest->dedup.lacks_index)
		load_index(ingest);
	if (ingest_is_full(ingest))
		return SINK_WAIT;
	if (ingest->size + bytes.len <= INLINE_MAX_BYTES && bytes.len > 0)
		memcpy(ingest->inline_bytes + ingest->size, bytes.data, bytes.len);
	ingest->size += bytes.len;
	if (ingest->serialized == NULL)
		ingest_digest_add(ingest, bytes);
	if (ingest_push(ingest, bytes, err) == 0)
		return SINK_TAKEN;
	ingest_fail(ingest, err);
	return SINK_FAILED;
}

int ingest_cut(struct ingest *ingest, struct error *err)
{
	ASSERT(ingest->options.never_inline);
	if (ingest_has_failed(ingest))
		return ingest_outcome(ingest, err);
	if (ingest_end_chunk(ingest, err) == 0)
		return 0;
	ingest_fail(ingest, err);
	return -1;
}

void ingest_close(struct ingest *ingest)
{
	struct error err = {0};
	if (!ingest_has_failed(ingest) && ingest_end_xorb(ingest, &err) != 0)
		ingest_fail(ingest, &err);
	ingest->part.size = ingest->size;
	ingest->part.segments = ingest->part_builder.segments;
	ingest->part.segment_count = ingest->part_builder.segment_count;
	ingest->part.is_inline = ingest->is_inline;
	if (ingest->is_inline)
		ingest->part.inline_bytes = span_of(ingest->inline_bytes, (size_t)ingest->size);
	if (ingest->serialized == NULL)
		ingest_digest_end(ingest);
	metrics_add(ingest->store->metrics, METRIC_BYTES_INGESTED, (int64_t)ingest->size);
	ingest_job_ends(ingest);
}

void ingest_finish(struct ingest *ingest)
{
	struct error err = {0};
	/* for this call and ingest_close: `done` comes when the last job ends */
	ingest_job_begins(ingest);
	lock_enter(&ingest->lock);
	ASSERT(!ingest->finished);
	ingest->finished = true;
	lock_leave(&ingest->lock);
	if (!ingest_has_failed(ingest) && ingest_end_stream(ingest, &err) != 0)
		ingest_fail(ingest, &err);
	if (!ingest_check_end(ingest))
		ingest_close(ingest);
}

int ingest_outcome(struct ingest *ingest, struct error *err)
{
	lock_enter(&ingest->lock);
	const bool failed = ingest->failed;
	if (failed)
		*err = ingest->error;
	lock_leave(&ingest->lock);
	return failed ? -1 : 0;
}

const struct stored_part *ingest_part(const struct ingest *ingest)
{
	return &ingest->part;
}

size_t ingest_packs(const struct ingest *ingest, const struct pack_record **out_records)
{
	*out_records = ingest->records;
	return ingest->record_count;
}

void ingest_in_doubt(struct ingest *ingest)
{
	atomic_store(&ingest->is_in_doubt, true);
	atomic_store(&ingest->keeps_packs, true);
}

void ingest_committed(struct ingest *ingest)
{
	ASSERT(!atomic_load(&ingest->keeps_packs) && (!ingest->is_staged || ingest->is_placed));
	atomic_store(&ingest->keeps_packs, true);
	ingest_check_offer(ingest);
	if (ingest->record_count == 0)
		return;
	struct pack_id *const packs = memory_new_array(ingest->record_count, sizeof(*packs));
	for (size_t i = 0; i < ingest->record_count; i++)
		packs[i] = ingest->records[i].id;
	pack_feed_submit(ingest->store, packs, ingest->record_count);
	free(packs);
}

static void ingest_unreference(struct ingest *ingest)
{
	lock_enter(&ingest->lock);
	ASSERT(ingest->references > 0);
	const bool is_last = --ingest->references == 0;
	lock_leave(&ingest->lock);
	if (is_last)
		ingest_destroy(ingest);
}

static void ingest_destroy(struct ingest *ingest)
{
	ingest_pack_release(ingest, atomic_load(&ingest->keeps_packs));
	dedup_release(&ingest->dedup, atomic_load(&ingest->is_in_doubt));
	part_builder_release(&ingest->part_builder);
	xorb_builder_release(&ingest->xorb);
	chunk_stream_free(ingest->chunks);
	xorb_parse_free(ingest->serialized);
	ingest_digest_release(ingest);
	ingest_check_release(ingest);
	lock_release(&ingest->lock);
	free(ingest);
}

static int ingest_push(struct ingest *ingest, struct span bytes, struct error *err)
{
	if (ingest->serialized != NULL)
		return xorb_parse_push(ingest->serialized, bytes, err);
	ingest->scratch = pack_store_take_scratch(ingest->store);
	int result = ingest_check_repair(ingest, err);
	if (result == 0)
		result = chunk_stream_push(ingest->chunks, bytes, err);
	pack_store_give_scratch(ingest->store, ingest->scratch);
	ingest->scratch = NULL;
	return result;
}

static int ingest_end_chunk(struct ingest *ingest, struct error *err)
{
	ingest->scratch = pack_store_take_scratch(ingest->store);
	const int result = chunk_stream_end(ingest->chunks, err);
	pack_store_give_scratch(ingest->store, ingest->scratch);
	ingest->scratch = NULL;
	return result;
}

static int ingest_end_xorb(struct ingest *ingest, struct error *err)
{
	if (ingest->serialized != NULL)
		return ingest_records_end(ingest, err);
	if (ingest_check_repair(ingest, err) != 0)
		return -1;
	part_builder_join(&ingest->part_builder);
	return ingest_end_chunks(ingest, err);
}

static int ingest_end_stream(struct ingest *ingest, struct error *err)
{
	if (ingest->serialized != NULL)
		return 0;
	ingest->is_inline = ingest->size <= INLINE_MAX_BYTES && !ingest->options.never_inline;
	return ingest_end_chunk(ingest, err);
}
