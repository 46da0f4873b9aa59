/* sealed? --> new file, durable --> the catalog names it --> reads use it --> the old file is removed
 *
 * The commit that names the new file also puts the old one into the table `removals`. So at any
 * point the catalog names a whole file. */
#include "storage/core/pack_mend.h"

#include "storage/core/committer.h"
#include "storage/core/damage_row.h"
#include "storage/core/pack_row.h"
#include "storage/core/removal_row.h"

/* The change that names the new file and drops the rows of the damage. */
struct move {
	struct change change; /* first */
	const struct pack_index *to;
	const struct pack_patch *patch;
	struct pack_id old_file;
};

struct seal {
	struct change change; /* first */
	struct pack_store *packs;
};

static int await_sealed(struct store *store, const struct pack_id *pack, struct error *err);
static int pack_mend_place_seal(struct change *change, struct error *err);
static int pack_mend_apply_nothing(struct change *change, struct db *db, struct error *err);
static int take_over(struct store *store, struct pack_index *index, const struct pack_patch *patch,
	struct error *err);
static int pack_mend_apply_move(struct change *change, struct db *db, struct error *err);
static int drop_rows(const struct move *move, struct db *db, struct error *err);
static void forget_damage(
	struct pack_store *packs, const struct pack_id *pack, const struct pack_patch *patch);

int pack_mend(struct store *store, const struct pack_id *pack, const struct pack_patch *patch,
	struct error *err)
{
	if (await_sealed(store, pack, err) != 0)
		return -1;
	struct pack_index *index = pack_rewrite_patched(store_packs(store), pack, patch, err);
	return index == NULL ? -1 : take_over(store, index, patch, err);
}

/* A pack can be mended once it is sealed and its index is saved. The open shared pack is sealed for
 * this. */
static int await_sealed(struct store *store, const struct pack_id *pack, struct error *err)
{
	struct pack_store *packs = store_packs(store);
	enum pack_cache_mode mode = pack_cache_mode(packs->cache, pack);
	struct seal seal = {
		.change = {.place = pack_mend_place_seal, .apply = pack_mend_apply_nothing},
		.packs = packs};
	if (mode == PACK_CACHE_SAVED)
		return 0;
	if (mode == PACK_CACHE_GROWING &&
		committer_run(store_committer(store), &seal.change, err) != 0)
		return -1;
	return error_set(err, ERROR_BUSY,
		"The stored content is damaged, and its pack is being sealed. Send the content again.");
}

static int pack_mend_place_seal(struct change *change, struct error *err)
{
	(void)err;
	pack_store_shared_seal(((struct seal *)change)->packs);
	return 0;
}

static int pack_mend_apply_nothing(struct change *change, struct db *db, struct error *err)
{
	(void)change, (void)db, (void)err;
	return 0;
}

static int take_over(struct store *store, struct pack_index *index, const struct pack_patch *patch,
	struct error *err)
{
	struct pack_store *packs = store_packs(store);
	const struct pack_id pack = index->pack;
	struct move move = {.change = {.apply = pack_mend_apply_move}, .to = index, .patch = patch};
	if (committer_run(store_committer(store), &move.change, err) != 0) {
		/* in doubt the catalog may name it yet: the next start finds out */
		if (!move.change.in_doubt)
			pack_store_remove_files(packs, &index->file);
		pack_index_free(index);
		return -1;
	}
	pack_cache_reform(packs->cache, &pack, index);
	pack_store_retire_files(packs, &move.old_file);
	forget_damage(packs, &pack, patch);
	return 0;
}

static int pack_mend_apply_move(struct change *change, struct db *db, struct error *err)
{
	struct move *move = (struct move *)change;
	struct pack_record record;
	int64_t number;
	int found = pack_row_number(db, &move->to->pack, &number, err);
	if (found == 1)
		found = pack_row_find(db, number, &record, err);
	if (found != 1 || record.state != PACK_SEALED)
		return found < 0
			? -1
			: error_set(err, ERROR_BUSY,
				  "The damaged pack is not sealed yet. Send the content again.");
	move->old_file = *pack_record_file(&record);
	if (removal_row_add(db, &move->old_file, err) != 0 || drop_rows(move, db, err) != 0)
		return -1;
	return pack_row_move(db, number, &move->to->file, move->to->length, err);
}

static int drop_rows(const struct move *move, struct db *db, struct error *err)
{
	for (uint32_t i = 0; i < move->patch->count; i++)
		if (damage_row_drop(db, &move->to->pack, move->patch->numbers[i], 1, err) != 0)
			return -1;
	return 0;
}

static void forget_damage(
	struct pack_store *packs, const struct pack_id *pack, const struct pack_patch *patch)
{
	for (uint32_t i = 0; i < patch->count; i++)
		pack_damage_forget(packs->damage, pack, patch->numbers[i], 1);
}
