#include "storage/runs/fold_change.h"

#include <stdlib.h>

#include "base/memory.h"
#include "storage/core/committer.h"
#include "storage/run_tables/fold_row.h"

struct fold_change {
	struct change change; /* first */
	struct store *store;
	struct fold_row row;
};

static void submit(struct store *store,
	int (*apply)(struct change *change, struct db *db, struct error *err),
	const struct fold_row *row);
static void fold_changed(struct change *base);
static int fold_apply_request(struct change *base, struct db *db, struct error *err);
static int fold_apply_touch(struct change *base, struct db *db, struct error *err);

void fold_change_request(struct store *store, int64_t run, uint64_t from, uint64_t to)
{
	submit(store, fold_apply_request,
		&(struct fold_row){.run = run, .from = from, .to = to, .kind = FOLD_DIRECT});
}

void fold_change_touch(struct store *store, int64_t fold)
{
	submit(store, fold_apply_touch, &(struct fold_row){.id = fold});
}

static void submit(struct store *store,
	int (*apply)(struct change *change, struct db *db, struct error *err),
	const struct fold_row *row)
{
	struct fold_change *const change = memory_new(sizeof(*change));
	change->change.apply = apply;
	change->change.done = fold_changed;
	change->store = store;
	change->row = *row;
	change->row.used_ms = store_now_ms(store);
	committer_submit(store_committer(store), &change->change);
}

static void fold_changed(struct change *base)
{
	store_wake(((struct fold_change *)base)->store, STORE_STEP_WORK);
	free(base);
}

/* A run or step that went meanwhile makes no difference: the row is refused when its turn comes, or
 * swept with the run. */
static int fold_apply_request(struct change *base, struct db *db, struct error *err)
{
	const struct fold_change *const change = (struct fold_change *)base;
	bool has_room = false;
	if (fold_row_has_room(db, change->row.run, change->row.used_ms, &has_room, err) != 0)
		return -1;
	if (!has_room)
		return 0; /* others asked at the same time */
	return fold_row_want(db, &change->row, err) != 0
		? -1
		: fold_row_release_surplus(db, change->row.run, err);
}

static int fold_apply_touch(struct change *base, struct db *db, struct error *err)
{
	const struct fold_change *const change = (struct fold_change *)base;
	return fold_row_set_used(db, change->row.id, change->row.used_ms, err);
}
