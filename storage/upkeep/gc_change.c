/* Each act is one change. A change that deletes first asks whether the catalog is proven. Then it
 * looks for rows and promises inside the transaction: the committer runs one change at a time, so
 * nothing can come between that look and the act. */
#include "storage/upkeep/gc_change.h"

#include <stdlib.h>

#include "base/memory.h"
#include "storage/core/committer.h"
#include "storage/core/damage_row.h"
#include "storage/core/pack_row.h"
#include "storage/core/removal_row.h"
#include "storage/core/store.h"
#include "storage/packs/pack_table.h"
#include "storage/packs/store_health.h"
#include "storage/xet/xorb_row.h"

struct gc_change {
	struct change change; /* first */
	const struct gc_work *work;
	struct gc_pack *pack;
	enum gc_act act;
	const struct pack_index *moved_to; /* of GC_MOVE */
	bool is_named;                     /* out */
};

static int64_t promises_ended_ms(const struct gc_work *work);
static int gc_apply(struct change *base, struct db *db, struct error *err);
static int gc_apply_condemn(struct gc_change *change, struct db *db, struct error *err);
static int find_names(struct gc_change *change, struct db *db, struct error *err);
static int gc_apply_spare(struct gc_change *change, struct db *db, struct error *err);
static int gc_apply_remove(struct gc_change *change, struct db *db, struct error *err);
static bool is_referred(const struct gc_change *change);
static int gc_apply_move(struct gc_change *change, struct db *db, struct error *err);
static int find_more(struct gc_change *change, struct db *db, struct error *err);
static int gc_place_seal(struct change *base, struct error *err);

int gc_change_mark(const struct gc_work *work, const struct gc_pack *pack, struct db *db,
	struct gc_marks *marks, struct error *err)
{
	const uint32_t chunks = pack->record.chunks;
	ASSERT(marks->live != NULL);
	if (pack_row_mark(db, pack->number, chunks, marks->live, &marks->rows, err) != 0)
		return -1;
	marks->needed = pack_table_count(marks->live, chunks);
	struct xorb_marks promised = {.live = marks->live, .chunks = chunks, .rows = marks->rows};
	const int result =
		xorb_row_mark_promised(db, pack->number, promises_ended_ms(work), &promised, err);
	marks->rows = promised.rows;
	return result;
}

int gc_change_run(const struct gc_work *work, struct gc_pack *pack, enum gc_act act,
	bool *out_named, struct error *err)
{
	struct gc_change change = {
		.change = {.apply = gc_apply}, .work = work, .pack = pack, .act = act};
	ASSERT(act != GC_MOVE);
	if (act == GC_SEAL)
		change.change.place = gc_place_seal;
	const int result = committer_run(store_committer(work->store), &change.change, err);
	*out_named = change.is_named;
	return result;
}

int gc_change_move(
	const struct gc_work *work, struct gc_pack *pack, struct gc_move *move, struct error *err)
{
	struct gc_change change = {.change = {.apply = gc_apply},
		.work = work,
		.pack = pack,
		.act = GC_MOVE,
		.moved_to = move->to};
	const int result = committer_run(store_committer(work->store), &change.change, err);
	move->is_named = change.is_named;
	move->in_doubt = change.change.in_doubt;
	return result;
}

/* Promises that end by then count for nothing. */
static int64_t promises_ended_ms(const struct gc_work *work)
{
	return work->ends_promises ? INT64_MAX : store_now_ms(work->store);
}

static int gc_apply(struct change *base, struct db *db, struct error *err)
{
	static int (*const acts[])(
		struct gc_change * change, struct db * db, struct error * err) = {
		[GC_CONDEMN] = gc_apply_condemn,
		[GC_SPARE] = gc_apply_spare,
		[GC_REMOVE] = gc_apply_remove,
		[GC_MOVE] = gc_apply_move,
	};
	struct gc_change *const change = (struct gc_change *)base;
	const bool deletes = change->act != GC_SEAL && change->act != GC_SPARE;
	if (deletes && store_health_check_delete(store_health(change->work->store), err) != 0)
		return -1;
	ASSERT(change->act <= GC_SEAL);
	return change->act == GC_SEAL ? 0 : acts[change->act](change, db, err);
}

static int gc_apply_condemn(struct gc_change *change, struct db *db, struct error *err)
{
	if (find_names(change, db, err) != 0)
		return -1;
	return change->is_named ? 0
				: pack_row_condemn(db, change->pack->number,
					  store_now_ms(change->work->store), err);
}

/* Sets is_named when rows or promises need the pack: they may have come since gc looked. */
static int find_names(struct gc_change *change, struct db *db, struct error *err)
{
	bool is_promised = false;
	if (pack_row_is_named(db, change->pack->number, &change->is_named, err) != 0 ||
		xorb_row_is_promised(db, change->pack->number, promises_ended_ms(change->work),
			&is_promised, err) != 0)
		return -1;
	change->is_named = change->is_named || is_promised;
	return 0;
}

static int gc_apply_spare(struct gc_change *change, struct db *db, struct error *err)
{
	return pack_row_spare(db, change->pack->number, err);
}

static int gc_apply_remove(struct gc_change *change, struct db *db, struct error *err)
{
	const int64_t number = change->pack->number;
	if (find_names(change, db, err) != 0)
		return -1;
	change->is_named = change->is_named || is_referred(change);
	if (change->is_named)
		return pack_row_spare(db, number, err);
	if (removal_row_add(db, pack_record_file(&change->pack->record), err) != 0 ||
		xorb_row_drop_of_pack(db, number, err) != 0 ||
		damage_row_drop_pack(db, number, err) != 0)
		return -1;
	return pack_row_remove(db, number, err);
}

/* Whether an ingest refers to the pack. Rows may have come and gone again since the view, and a
 * thread that saw them may be about to copy them. */
static bool is_referred(const struct gc_change *change)
{
	return pack_cache_is_referred(
		store_packs(change->work->store)->cache, &change->pack->record.id);
}

static int gc_apply_move(struct gc_change *change, struct db *db, struct error *err)
{
	const struct gc_pack *const pack = change->pack;
	ASSERT(change->moved_to != NULL);
	change->is_named = is_referred(change);
	if (find_more(change, db, err) != 0)
		return -1;
	if (change->is_named)
		return 0;
	if (xorb_row_drop_broken(db, pack->number, pack->record.chunks, pack->live, err) != 0)
		return -1;
	if (removal_row_add(db, pack_record_file(&pack->record), err) != 0)
		return -1;
	return pack_row_move(
		db, pack->number, &change->moved_to->file, change->moved_to->length, err);
}

/* Sets is_named unless the new file has all that lives now. It has, since nobody can find chunks in
 * a retiring pack, except for promises that were made since. */
static int find_more(struct gc_change *change, struct db *db, struct error *err)
{
	const struct gc_pack *const pack = change->pack;
	struct gc_marks marks = {.live = memory_new(pack->record.chunks / 8 + 1)};
	ASSERT(pack->live != NULL);
	const int result = gc_change_mark(change->work, pack, db, &marks, err);
	for (uint32_t i = 0; result == 0 && i <= pack->record.chunks / 8; i++)
		change->is_named |= (marks.live[i] & ~pack->live[i]) != 0;
	free(marks.live);
	return result;
}

static int gc_place_seal(struct change *base, struct error *err)
{
	(void)err;
	pack_store_shared_seal(store_packs(((struct gc_change *)base)->work->store));
	return 0;
}
