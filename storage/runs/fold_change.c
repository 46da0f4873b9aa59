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
static void fold_change_done(struct change *base);
static int fold_change_apply_request(struct change *base, struct db *db, struct error *err);
static int fold_change_apply_used(struct change *base, struct db *db, struct error *err);

void fold_change_request(struct store *store, int64_t run, uint64_t from, uint64_t to)
{
	ASSERT(from < to);
	submit(store, fold_change_apply_request,
		&(struct fold_row){.run = run, .from = from, .to = to, .kind = FOLD_DIRECT});
}

void fold_change_mark_used(struct store *store, int64_t fold)
{
	ASSERT(fold > 0);
	submit(store, fold_change_apply_used, &(struct fold_row){.id = fold});
}

static void submit(struct store *store,
	int (*apply)(struct change *change, struct db *db, struct error *err),
	const struct fold_row *row)
{
	struct fold_change *const change = memory_new(sizeof(*change));
	change->change.apply = apply;
	change->change.done = fold_change_done;
	change->store = store;
	change->row = *row;
	change->row.used_ms = store_now_ms(store);
	committer_submit(store_committer(store), &change->change);
}

static void fold_change_done(struct change *base)
{
	store_wake(((struct fold_change *)base)->store, STORE_STEP_WORK);
	free(base);
}

/* The run or a step may be gone by now: then the step worker refuses the row when its turn comes,
 * or the sweeper removes it with the run. */
static int fold_change_apply_request(struct change *base, struct db *db, struct error *err)
{
	const struct fold_change *const change = (struct fold_change *)base;
	bool has_room = false;
	if (fold_row_has_room(db, change->row.run, change->row.used_ms, &has_room, err) != 0)
		return -1;
	if (!has_room)
		return 0; /* other readers have taken the room */
	return fold_row_want(db, &change->row, err) != 0
		? -1
		: fold_row_release_surplus(db, change->row.run, err);
}

static int fold_change_apply_used(struct change *base, struct db *db, struct error *err)
{
	const struct fold_change *const change = (struct fold_change *)base;
	return fold_row_set_used(db, change->row.id, change->row.used_ms, err);
}
