#include "storage/overview/store_glance.h"

#include "storage/buckets/bucket_row.h"
#include "storage/buckets/bucket_totals.h"
#include "storage/core/pack_row.h"
#include "storage/run_tables/run_row.h"

enum { GLANCE_ARENA_BYTES = 64 * 1024 };

struct glance {
	struct call call;
	struct span owner;
	struct store_glance result;
};

static enum call_next store_glance_help(struct call *call, struct error *err);

static const struct call_kind glance_kind = {.stages = {{.help = store_glance_help}}};

struct call *store_glance_call(struct store *store, struct span owner)
{
	struct glance *const glance =
		call_new(sizeof(*glance), &glance_kind, store, GLANCE_ARENA_BYTES);
	glance->owner = arena_copy(glance->call.arena, owner);
	return &glance->call;
}

const struct store_glance *store_glance_result(const struct call *call)
{
	ASSERT(call->kind == &glance_kind && !call->failed);
	return &((const struct glance *)call)->result;
}

static enum call_next store_glance_help(struct call *call, struct error *err)
{
	struct glance *const glance = (struct glance *)call;
	struct store_glance *const out = &glance->result;
	struct bucket_totals totals = {0};
	struct db *const db = store_snapshot_take(call->store, err);
	const bool failed = db == NULL ||
		bucket_row_count(db, glance->owner, &out->buckets, err) != 0 ||
		run_row_count_all(db, &out->runs, err) != 0 ||
		bucket_totals_sum_all(db, &totals, err) != 0 ||
		pack_row_bytes(db, &out->stored_bytes, err) != 0;
	store_snapshot_give(call->store, db);
	out->logical_bytes = (uint64_t)totals.bytes;
	return failed ? CALL_FAILS : CALL_NEXT;
}
