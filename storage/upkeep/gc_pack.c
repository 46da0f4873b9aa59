/* A table gives each stage its function (gc_pack.h describes the stages). Every end but a deletion
 * goes through one of the finish functions: lookups find the pack again unless it is condemned, and
 * it is noted for another round if something came between or failed. */
#include "storage/upkeep/gc_pack.h"

#include <stdlib.h>

#include "base/memory.h"
#include "storage/core/pack_row.h"
#include "storage/core/store.h"
#include "storage/journal/journal.h"
#include "storage/packs/pack_table.h"
#include "storage/upkeep/gc_change.h"

enum {
	GC_ROW_BYTES = 64,     /* what reading a row counts as, for the rate */
	GC_WORTH_BYTES = 4096, /* a compaction must give back as many */
	GC_OPEN_PERCENT = 50,  /* the open pack is sealed when so much of it is dead, */
	GC_OPEN_SHARE = 4      /* and it has this part of the largest size: a quarter */
};

static int look(const struct gc_work *work, struct gc_pack *pack, struct error *err);
static int take_view(const struct gc_work *work, struct gc_pack *pack, struct error *err);
static int read_rows(const struct gc_work *work, struct gc_pack *pack, struct db *db,
	size_t *out_rows, struct error *err);
static uint64_t promised_bytes(const struct gc_pack *pack);
static bool is_too_young(const struct gc_work *work, const struct gc_pack *pack);
static int seal_open(const struct gc_work *work, struct gc_pack *pack, struct error *err);
static struct pack_store *packs_of(const struct gc_work *work);
static int judge(const struct gc_work *work, struct gc_pack *pack, struct error *err);
static int is_worth_it(const struct gc_work *work, const struct gc_pack *pack, bool *out_worth,
	uint64_t *out_gain, struct error *err);
static struct pack_cache *cache_of(const struct gc_work *work);
static void log_pack_failure(
	const struct gc_work *work, const struct gc_pack *pack, struct error *err);
static void pack_free(struct gc_pack *pack);
static bool advance_begin(const struct gc_work *work, struct gc_pack *pack);
static void finish_failed(const struct gc_work *work, struct gc_pack *pack, struct error *err);
static void finish_untouched(const struct gc_work *work, struct gc_pack *pack);
static bool advance_references(const struct gc_work *work, struct gc_pack *pack);
static bool advance_view(const struct gc_work *work, struct gc_pack *pack);
static void spare(const struct gc_work *work, struct gc_pack *pack);
static bool advance_readers(const struct gc_work *work, struct gc_pack *pack);
static bool advance_reads(const struct gc_work *work, struct gc_pack *pack);
static bool advance_act(const struct gc_work *work, struct gc_pack *pack);
static void act_delete(const struct gc_work *work, struct gc_pack *pack);
static void forget_chunks(const struct gc_work *work, struct gc_pack *pack);
static void finish_again(const struct gc_work *work, struct gc_pack *pack);
static void act_compact(const struct gc_work *work, struct gc_pack *pack);
static void take_over(const struct gc_work *work, struct gc_pack *pack, struct pack_index *index);

struct gc_pack *gc_pack_look(const struct gc_work *work, int64_t number)
{
	struct error err = {0};
	struct gc_pack *const pack = memory_new(sizeof(*pack));
	ASSERT(work->store != NULL && work->report != NULL && work->pace.spend != NULL);
	pack->number = number;
	const int wanted = look(work, pack, &err);
	if (wanted == 1)
		return pack;
	if (wanted < 0)
		log_pack_failure(work, pack, &err);
	pack_free(pack);
	return NULL;
}

bool gc_pack_advance(const struct gc_work *work, struct gc_pack *pack)
{
	static bool (*const stages[])(const struct gc_work *work, struct gc_pack *pack) = {
		[GC_BEGIN] = advance_begin,
		[GC_REFERENCES] = advance_references,
		[GC_VIEW] = advance_view,
		[GC_READERS] = advance_readers,
		[GC_READS] = advance_reads,
		[GC_ACT] = advance_act,
	};
	ASSERT(pack->stage < GC_DONE);
	return stages[pack->stage](work, pack);
}

void gc_pack_close(const struct gc_work *work, struct gc_pack *pack)
{
	ASSERT(pack != NULL);
	if (pack->stage != GC_DONE) {
		pack_touches_again(store_pack_touches(work->store), pack->number);
		if (!pack->is_condemned)
			pack_cache_retire(cache_of(work), &pack->record.id, false);
	}
	pack_free(pack);
}

static int look(const struct gc_work *work, struct gc_pack *pack, struct error *err)
{
	struct pack_touches *const touches = store_pack_touches(work->store);
	if (!work->dry_run)
		pack_touches_look(touches, pack->number);
	int result = take_view(work, pack, err);
	if (result < 0 && !work->dry_run && err->kind != ERROR_CORRUPT)
		pack_touches_again(touches, pack->number);
	if (result == 0)
		pack_touches_forget(touches, pack->number);
	if (result != 1)
		return result;
	work->report->packs++;
	work->report->bytes += pack->record.length;
	work->report->bytes_promised += promised_bytes(pack);
	if (!work->dry_run) /* a dry run leaves the lost references for a real round */
		pack_touches_looked(touches, pack->number, pack->live_count);
	if (is_too_young(work, pack))
		return 0;
	if (pack->record.state == PACK_OPEN)
		result = seal_open(work, pack, err);
	return result == 1 ? judge(work, pack, err) : result;
}

/* Reads the pack's record and which chunks live, in one snapshot, since an open pack grows
 * meanwhile. 1: the pack is there. */
static int take_view(const struct gc_work *work, struct gc_pack *pack, struct error *err)
{
	struct db *const db = store_snapshot_take(work->store, err);
	if (db == NULL)
		return -1;
	size_t rows = 0;
	const int found = read_rows(work, pack, db, &rows, err);
	store_snapshot_give(work->store, db);
	if (found != 1)
		return found;
	pack->live_count = pack_table_count(pack->live, pack->record.chunks);
	if (!work->pace.spend(work->pace.owner, rows * GC_ROW_BYTES))
		return error_set(err, ERROR_BUSY, "The store is closing.");
	return 1;
}

static int read_rows(const struct gc_work *work, struct gc_pack *pack, struct db *db,
	size_t *out_rows, struct error *err)
{
	const int found = pack_row_find(db, pack->number, &pack->record, err);
	if (found != 1)
		return found;
	free(pack->live);
	pack->live = memory_new(pack->record.chunks / 8 + 1);
	struct gc_marks marks = {.live = pack->live};
	if (gc_change_mark(work, pack, db, &marks, err) != 0)
		return -1;
	pack->needed_count = marks.needed;
	*out_rows = marks.rows;
	return 1;
}

/* An estimate, as if all its chunks were of one size. */
static uint64_t promised_bytes(const struct gc_pack *pack)
{
	ASSERT(pack->needed_count <= pack->live_count);
	const uint64_t alone = pack->live_count - pack->needed_count;
	return pack->record.chunks == 0
		? 0
		: (uint64_t)((double)pack->record.length * (double)alone / pack->record.chunks);
}

static bool is_too_young(const struct gc_work *work, const struct gc_pack *pack)
{
	return work->promise_ms > 0 &&
		pack->record.created_ms + work->promise_ms > store_now_ms(work->store);
}

/* Seals the open shared pack when much of it is dead; then it is a pack like any other. 1: it was
 * sealed. */
static int seal_open(const struct gc_work *work, struct gc_pack *pack, struct error *err)
{
	const uint64_t dead = pack->record.chunks - pack->live_count;
	const unsigned percent = work->is_asked ? 100 - work->live_percent : GC_OPEN_PERCENT;
	const bool is_large = work->is_asked ||
		pack->record.length >= packs_of(work)->pack_max_bytes / GC_OPEN_SHARE;
	bool ignored;
	ASSERT(pack->record.state == PACK_OPEN && work->live_percent <= 100);
	if (!is_large || dead == 0 || dead * 100 < (uint64_t)pack->record.chunks * percent)
		return 0;
	if (work->dry_run) {
		/* an estimate, since its index is not at hand */
		work->report->bytes_freed += pack->record.length * dead / pack->record.chunks;
		work->report->packs_compacted++;
		return 0;
	}
	if (gc_change_run(work, pack, GC_SEAL, &ignored, err) != 0)
		return -1;
	const int found = take_view(work, pack, err); /* it may have grown meanwhile */
	return found == 1 && pack->record.state == PACK_OPEN ? 0 : found;
}

static struct pack_store *packs_of(const struct gc_work *work)
{
	return store_packs(work->store);
}

/* 1: there is something to do with the pack. */
static int judge(const struct gc_work *work, struct gc_pack *pack, struct error *err)
{
	bool worth = false;
	uint64_t gain = pack->record.length;
	ASSERT(pack->record.state != PACK_OPEN);
	pack->is_condemned = pack->record.state == PACK_CONDEMNED;
	pack->deletes = pack->is_condemned || pack->live_count == 0;
	if (!pack->deletes && is_worth_it(work, pack, &worth, &gain, err) != 0)
		return -1;
	if (!pack->deletes && !worth)
		return 0;
	if (work->dry_run) {
		work->report->bytes_freed += gain;
		work->report->packs_deleted += pack->deletes;
		work->report->packs_compacted += !pack->deletes;
	}
	return !work->dry_run;
}

/* *out_worth: so few bytes live that writing them again is worth it. */
static int is_worth_it(const struct gc_work *work, const struct gc_pack *pack, bool *out_worth,
	uint64_t *out_gain, struct error *err)
{
	uint64_t length = 0;
	uint64_t old = 0;
	ASSERT(pack->live_count <= pack->record.chunks);
	*out_worth = false;
	if (pack->live_count == pack->record.chunks ||
		pack_cache_mode(cache_of(work), &pack->record.id) == PACK_CACHE_GROWING)
		return 0;
	if (pack_rewrite_measure(
		    packs_of(work), &pack->record.id, pack->live, &length, &old, err) != 0)
		return -1;
	*out_gain = old > length ? old - length : 0;
	*out_worth = *out_gain >= GC_WORTH_BYTES && length * 100 < old * work->live_percent;
	return 0;
}

static struct pack_cache *cache_of(const struct gc_work *work)
{
	return packs_of(work)->cache;
}

static void log_pack_failure(
	const struct gc_work *work, const struct gc_pack *pack, struct error *err)
{
	char text[PACK_ID_TEXT_BYTES];
	pack_id_format(&pack->record.id, text);
	error_wrap(err, "pack %s", text);
	log_failure(store_log(work->store), err->kind == ERROR_BUSY ? LOG_DEBUG : LOG_WARNING, NULL,
		"gc_pack", err);
}

static void pack_free(struct gc_pack *pack)
{
	free(pack->live);
	free(pack);
}

/* A pack whose index is not saved yet must wait: a helper is at work on it. */
static bool advance_begin(const struct gc_work *work, struct gc_pack *pack)
{
	struct error err = {0};
	bool is_named = false;
	if (pack_cache_mode(cache_of(work), &pack->record.id) != PACK_CACHE_SAVED)
		return false;
	pack_cache_retire(cache_of(work), &pack->record.id, true);
	pack->stage = GC_REFERENCES;
	if (!pack->deletes || pack->is_condemned)
		return true;
	if (gc_change_run(work, pack, GC_CONDEMN, &is_named, &err) != 0)
		finish_failed(work, pack, &err);
	else if (is_named)
		finish_untouched(work, pack);
	else
		pack->is_condemned = true;
	return true;
}

/* Something failed: another round tries again. */
static void finish_failed(const struct gc_work *work, struct gc_pack *pack, struct error *err)
{
	ASSERT(pack->stage != GC_DONE);
	log_pack_failure(work, pack, err);
	if (err->kind != ERROR_CORRUPT)
		pack_touches_again(store_pack_touches(work->store), pack->number);
	if (!pack->is_condemned)
		pack_cache_retire(cache_of(work), &pack->record.id, false);
	pack->stage = GC_DONE;
}

/* The pack ends as it was before: lookups find it again. */
static void finish_untouched(const struct gc_work *work, struct gc_pack *pack)
{
	ASSERT(pack->stage != GC_DONE && !pack->is_condemned);
	pack_cache_retire(cache_of(work), &pack->record.id, false);
	pack->stage = GC_DONE;
}

static bool advance_references(const struct gc_work *work, struct gc_pack *pack)
{
	if (pack_cache_is_referred(cache_of(work), &pack->record.id))
		return false;
	pack->stage = GC_VIEW;
	return true;
}

static bool advance_view(const struct gc_work *work, struct gc_pack *pack)
{
	struct error err = {0};
	uint64_t gain;
	bool worth = true;
	int result = take_view(work, pack, &err) == 1 ? 0 : -1;
	if (result == 0 && !pack->deletes && pack->live_count > 0)
		result = is_worth_it(work, pack, &worth, &gain, &err);
	if (result != 0) {
		finish_failed(work, pack, &err);
	} else if (pack->deletes && pack->live_count > 0) {
		spare(work, pack);
	} else if (!pack->deletes && pack->live_count == 0) {
		pack->deletes = true;
		pack->stage = GC_BEGIN;
	} else if (!worth) {
		finish_untouched(work, pack);
	} else {
		pack->readers_mark = store_readers_mark(work->store);
		pack->stage = GC_READERS;
	}
	return true;
}

static void spare(const struct gc_work *work, struct gc_pack *pack)
{
	struct error err = {0};
	bool ignored;
	if (pack->is_condemned && gc_change_run(work, pack, GC_SPARE, &ignored, &err) != 0) {
		finish_failed(work, pack, &err);
		return;
	}
	pack->is_condemned = false;
	finish_untouched(work, pack);
}

static bool advance_readers(const struct gc_work *work, struct gc_pack *pack)
{
	if (!store_readers_passed(work->store, pack->readers_mark))
		return false;
	if (pack_cache_is_referred(cache_of(work), &pack->record.id)) {
		pack->stage = GC_REFERENCES;
		return true;
	}
	if (!pack_cache_turn(cache_of(work), &pack->record.id))
		return false;
	pack->stage = GC_READS;
	return true;
}

static bool advance_reads(const struct gc_work *work, struct gc_pack *pack)
{
	if (pack_cache_is_read_from_before(cache_of(work), &pack->record.id))
		return false;
	pack->stage = GC_ACT;
	return true;
}

static bool advance_act(const struct gc_work *work, struct gc_pack *pack)
{
	(pack->deletes ? act_delete : act_compact)(work, pack);
	return true;
}

static void act_delete(const struct gc_work *work, struct gc_pack *pack)
{
	struct error err = {0};
	bool is_named = false;
	ASSERT(pack->is_condemned && pack->live_count == 0);
	forget_chunks(work, pack);
	/* a catalog made from the journal must not name chunks of a pack that is gone */
	if (journal_sync(store_journal(work->store), &err) != 0 ||
		gc_change_run(work, pack, GC_REMOVE, &is_named, &err) != 0) {
		finish_failed(work, pack, &err);
		return;
	}
	if (is_named) { /* spared: its chunks may be found again */
		pack->is_condemned = false;
		finish_again(work, pack);
		pack_feed_submit(packs_of(work), &pack->record.id, 1);
		return;
	}
	pack_store_retire(packs_of(work), &pack->record.id);
	pack_touches_forget(store_pack_touches(work->store), pack->number);
	work->report->packs_deleted++;
	work->report->bytes_freed += pack->record.length;
	metrics_add(store_metrics(work->store), METRIC_PACKS_DELETED, 1);
	metrics_add(
		store_metrics(work->store), METRIC_GC_BYTES_FREED, (int64_t)pack->record.length);
	pack->stage = GC_DONE;
}

/* Rows of the chunk index are hints: if they cannot be removed, they cost space until the next
 * round over all packs. */
static void forget_chunks(const struct gc_work *work, struct gc_pack *pack)
{
	struct error err = {0};
	struct chunk_index *const chunk_index = store_chunk_index(work->store);
	if (chunk_index != NULL &&
		chunk_index_forget_pack(chunk_index, &pack->record.id, &err) != 0)
		log_pack_failure(work, pack, &err);
}

/* Rows or promises came in between: another round looks again. */
static void finish_again(const struct gc_work *work, struct gc_pack *pack)
{
	pack_touches_again(store_pack_touches(work->store), pack->number);
	finish_untouched(work, pack);
}

static void act_compact(const struct gc_work *work, struct gc_pack *pack)
{
	struct error err = {0};
	const int64_t begun_us = clock_monotonic_us();
	ASSERT(pack->live_count > 0 && !pack->is_condemned);
	struct pack_index *const index =
		pack_rewrite(packs_of(work), &pack->record.id, pack->live, &work->pace, &err);
	if (index == NULL) {
		finish_failed(work, pack, &err);
		return;
	}
	struct gc_move move = {.to = index};
	const int result = index->count == pack->live_count
		? gc_change_move(work, pack, &move, &err)
		: error_set(&err, ERROR_CORRUPT, "The pack lacks chunks that objects name.");
	if (result == 0 && !move.is_named) {
		take_over(work, pack, index);
		metrics_work(store_metrics(work->store), METRIC_WORK_PACK_COMPACTION, begun_us);
		return;
	}
	/* a commit in doubt may yet name the new file: the next start judges */
	if (result == 0 || !move.in_doubt)
		pack_store_remove_files(packs_of(work), &index->file);
	pack_index_free(index);
	if (result != 0)
		finish_failed(work, pack, &err);
	else
		finish_again(work, pack);
}

/* The row names the new file; there is no way back from here. */
static void take_over(const struct gc_work *work, struct gc_pack *pack, struct pack_index *index)
{
	const int64_t gain = (int64_t)pack->record.length - (int64_t)index->length;
	struct error err = {0};
	pack_cache_replace(cache_of(work), &pack->record.id, index);
	pack_store_retire_files(packs_of(work), pack_record_file(&pack->record));
	forget_chunks(work, pack);
	if (pack_feed_one(packs_of(work), &pack->record.id, &err) != 0)
		log_pack_failure(work, pack, &err);
	work->report->packs_compacted++;
	work->report->bytes_freed += (uint64_t)gain;
	metrics_add(store_metrics(work->store), METRIC_PACKS_COMPACTED, 1);
	metrics_add(store_metrics(work->store), METRIC_GC_BYTES_FREED, gain);
	pack_touches_looked(store_pack_touches(work->store), pack->number, pack->live_count);
	finish_untouched(work, pack);
}
