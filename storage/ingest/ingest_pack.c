/* Writes and syncs the packs of a stream, never on the writer's thread: the kernel may block a
 * write or a sync for any time, and other connections use that thread. The write lane appends
 * drains, and the sync lane settles a pack behind its last drain, so that the next pack fills
 * meanwhile. Failures show at the next write, or in the outcome. */
#include "storage/ingest/ingest_internal.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/random.h"

static struct ingest_drain *pack_new_drain(struct ingest *ingest);
static void ingest_pack_drain_run(struct helper_job *job);
static bool pack_is_wanted(struct ingest *ingest);
static int pack_write_drain(const struct ingest_drain *drain, struct error *err);
static void ingest_pack_settle_run(struct helper_job *job);
static int pack_settle(struct ingest_pack *pack, struct error *err);
static struct ingest_pack *pack_own(struct ingest *ingest);
static void pack_add_record(struct ingest *ingest, const struct pack_index *index);
static void pack_drop_records(struct ingest *ingest);

void ingest_pack_drain(struct ingest *ingest, bool is_last)
{
	struct ingest_drain *const drain = pack_new_drain(ingest);
	drain->pack = pack_own(ingest);
	drain->is_last = is_last;
	xorb_builder_swap_bytes(&ingest->xorb, &drain->bytes);
	ingest_job_begins(ingest);
	helpers_submit(ingest->store->helpers, &ingest->write_lane, &drain->job);
}

int ingest_pack_seal(struct ingest *ingest, struct error *err)
{
	struct chunk_id hash;
	ASSERT(ingest->xorb.count > 0);
	if (xorb_builder_finish(&ingest->xorb, &hash, err) != 0)
		return -1;
	struct pack_index *const index = pack_index_new(&ingest->pack);
	pack_index_add_xorb(index, &hash, ingest->xorb.entries, ingest->xorb.count);
	pack_add_record(ingest, index);
	pack_own(ingest)->index = index;
	ingest_pack_drain(ingest, true);
	ingest->own = NULL;
	xorb_builder_reset(&ingest->xorb);
	random_bytes(ingest->pack.bytes, sizeof(ingest->pack.bytes));
	return 0;
}

void ingest_pack_release(struct ingest *ingest, bool keep)
{
	ASSERT(ingest->drains_out == 0);
	if (ingest->own != NULL && ingest->own->writer != NULL) {
		pack_writer_close(ingest->own->writer);
		pack_store_drop_later(ingest->store, &ingest->own->id, 1);
	}
	free(ingest->own);
	if (!keep)
		pack_drop_records(ingest); /* invariant 4 */
	free(ingest->records);
}

static struct ingest_drain *pack_new_drain(struct ingest *ingest)
{
	lock_enter(&ingest->lock);
	ingest->drains_out++;
	lock_leave(&ingest->lock);
	struct ingest_drain *const drain = ingest_spares_take_drain(ingest->store->spares);
	drain->job.run = ingest_pack_drain_run;
	drain->ingest = ingest;
	return drain;
}

static void ingest_pack_drain_run(struct helper_job *job)
{
	struct ingest_drain *const drain = (struct ingest_drain *)job;
	struct ingest *const ingest = drain->ingest;
	struct error err = {0};
	if (pack_is_wanted(ingest) && pack_write_drain(drain, &err) != 0)
		ingest_fail(ingest, &err);
	if (drain->is_last) {
		drain->pack->job.run = ingest_pack_settle_run;
		ingest_job_begins(ingest);
		helpers_submit(ingest->store->helpers, &ingest->sync_lane, &drain->pack->job);
	}
	ingest_spares_give_drain(ingest->store->spares, drain);
	lock_enter(&ingest->lock);
	ASSERT(ingest->drains_out > 0);
	ingest->drains_out--;
	ingest_offer_room(ingest);
	lock_leave(&ingest->lock);
	ingest_job_ends(ingest);
}

static bool pack_is_wanted(struct ingest *ingest)
{
	return !atomic_load(&ingest->abandoned) && !ingest_has_failed(ingest);
}

static int pack_write_drain(const struct ingest_drain *drain, struct error *err)
{
	struct ingest_pack *const pack = drain->pack;
	if (disk_floor_check(drain->ingest->store->floor, err) != 0)
		return -1;
	if (pack->writer == NULL)
		pack->writer = pack_writer_open(drain->ingest->store->backend, &pack->id, err);
	return pack->writer == NULL
		? -1
		: pack_writer_append(pack->writer, buffer_span(&drain->bytes), err);
}

static void ingest_pack_settle_run(struct helper_job *job)
{
	struct ingest_pack *const pack = (struct ingest_pack *)job;
	struct ingest *const ingest = pack->ingest;
	struct error err = {0};
	if (pack_is_wanted(ingest) && pack_settle(pack, &err) != 0)
		ingest_fail(ingest, &err);
	pack_writer_close(pack->writer);
	pack_index_free(pack->index);
	free(pack);
	ingest_job_ends(ingest);
}

/* On a helper. From here on the pack is durable, and readers that learn of it can read it. */
static int pack_settle(struct ingest_pack *pack, struct error *err)
{
	struct pack_store *const store = pack->ingest->store;
	const int64_t begun_us = clock_monotonic_us();
	ASSERT(pack->writer->length == pack->index->length);
	if (pack_writer_sync(pack->writer, err) != 0) /* invariant 1 */
		return -1;
	metrics_work(store->metrics, METRIC_WORK_PACK_SYNC, begun_us);
	struct error ignored = {0}; /* the index is made again when it is needed */
	if (pack_index_save(pack->index, store->backend, &ignored) != 0)
		log_failure(store->log, LOG_WARNING, NULL, "pack_index_save", &ignored);
	pack_cache_add(store->cache, &pack->id, pack->index->length, pack->index, PACK_CACHE_SAVED);
	pack->index = NULL;
	metrics_add(store->metrics, METRIC_PACKS_SEALED, 1);
	return 0;
}

static struct ingest_pack *pack_own(struct ingest *ingest)
{
	if (ingest->own == NULL) {
		ingest->own = memory_new(sizeof(*ingest->own));
		ingest->own->ingest = ingest;
		ingest->own->id = ingest->pack;
	}
	return ingest->own;
}

static void pack_add_record(struct ingest *ingest, const struct pack_index *index)
{
	ingest->records =
		memory_grow(ingest->records, ingest->record_count + 1, sizeof(*ingest->records));
	ingest->records[ingest->record_count++] = (struct pack_record){
		.id = index->pack,
		.state = PACK_SEALED,
		.length = index->length,
		.chunks = index->count,
		.created_ms = ingest->store->clock->wall_ms(ingest->store->clock),
	};
	metrics_add(ingest->store->metrics, METRIC_BYTES_STORED, (int64_t)index->length);
}

static void pack_drop_records(struct ingest *ingest)
{
	struct pack_id *const packs = memory_new_array(ingest->record_count + 1, sizeof(*packs));
	for (size_t i = 0; i < ingest->record_count; i++)
		packs[i] = ingest->records[i].id;
	pack_store_drop_later(ingest->store, packs, ingest->record_count);
	free(packs);
}
