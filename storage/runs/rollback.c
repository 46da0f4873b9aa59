#include "storage/runs/rollback.h"

#include "base/thread/step_watch.h"
#include "storage/core/run_feed.h"
#include "storage/run_tables/pin_row.h"
#include "storage/run_tables/run_row.h"
#include "storage/run_tables/step_row.h"
#include "storage/runs/step_anchor_base.h"
#include "storage/runs/step_collect.h"
#include "storage/runs/step_read.h"

enum { ROLLBACK_ARENA_BYTES = 1024 * 1024 };

struct rollback_change {
	struct call call;
	struct run_ref run;
	uint64_t step;
	struct run_message message;
};

static struct call *make(struct store *store, const struct call_kind *kind,
	const struct run_ref *run, uint64_t step);
static int rollback_begin_apply(struct call *call, struct db *db, struct error *err);
static int check_step(struct db *db, int64_t run, uint64_t step, struct error *err);
static int put(struct db *db, const struct run_row *run, struct error *err);
static int rollback_end_apply(struct call *call, struct db *db, struct error *err);
static void rollback_settle(struct call *call);

static const struct call_kind begin_kind = {
	.stages = {{.apply = rollback_begin_apply}},
	.settle = rollback_settle,
};

static const struct call_kind end_kind = {
	.stages = {{.apply = rollback_end_apply}},
	.settle = rollback_settle,
};

struct call *rollback_begin_call(struct store *store, const struct run_ref *run, uint64_t step)
{
	return make(store, &begin_kind, run, step);
}

struct call *rollback_end_call(struct store *store, const struct run_ref *run)
{
	return make(store, &end_kind, run, 0);
}

const struct run_message *rollback_result(const struct call *call)
{
	ASSERT(call->kind == &begin_kind || call->kind == &end_kind);
	return &((const struct rollback_change *)call)->message;
}

static struct call *make(
	struct store *store, const struct call_kind *kind, const struct run_ref *run, uint64_t step)
{
	struct rollback_change *const change =
		call_new(sizeof(*change), kind, store, ROLLBACK_ARENA_BYTES);
	change->run = run_ref_copy(run, change->call.arena);
	change->step = step;
	return &change->call;
}

/* A repeat of the same one, after a lost reply, keeps its time. */
static int rollback_begin_apply(struct call *call, struct db *db, struct error *err)
{
	struct rollback_change *const change = (struct rollback_change *)call;
	struct run_row run;
	if (run_row_need(db, &change->run, &run, err) != 0 ||
		check_step(db, run.id, change->step, err) != 0)
		return -1;
	if (!run.rollback.is_on || run.rollback.step != change->step) {
		run.rollback = (struct rollback_message){.is_on = true,
			.step = change->step,
			.created_ms = store_now_ms(call->store)};
		if (put(db, &run, err) != 0)
			return -1;
	}
	run_row_message(&run, &change->run, &change->message);
	return 0;
}

static int check_step(struct db *db, int64_t run, uint64_t step, struct error *err)
{
	struct step_row row;
	uint64_t anchor;
	if (step_need_kept(db, run, step, &row, &anchor, err) != 0)
		return -1;
	return row.verified != STEP_FAILED
		? 0
		: error_set(err, ERROR_STEP_FAILED,
			  "The proof of step %llu failed, so the fleet cannot go back to it. Take another step.",
			  (unsigned long long)step);
}

static int put(struct db *db, const struct run_row *run, struct error *err)
{
	const struct pin_message pin = {.name = span_text(PIN_ROLLBACK),
		.step = run->rollback.step,
		.created_ms = run->rollback.created_ms};
	run_feed_note(db_context(db, DB_CONTEXT_RUN_FEED), run->id);
	return pin_row_put(db, run->id, &pin, err) != 0
		? -1
		: step_anchor_want_pinned(db, run->id, pin.step, err);
}

/* Also removes the steps that only the rollback kept. */
static int rollback_end_apply(struct call *call, struct db *db, struct error *err)
{
	struct rollback_change *const change = (struct rollback_change *)call;
	struct run_row run;
	if (run_row_need(db, &change->run, &run, err) != 0 ||
		pin_row_remove(db, run.id, span_text(PIN_ROLLBACK), err) != 0)
		return -1;
	run.rollback = (struct rollback_message){.is_on = false};
	if (step_retain(call->store, db, &run, err) != 0 || run_row_update(db, &run, err) != 0)
		return -1;
	run_row_message(&run, &change->run, &change->message);
	return 0;
}

/* The step worker makes the anchor of the step that is served now. */
static void rollback_settle(struct call *call)
{
	const struct rollback_change *const change = (const struct rollback_change *)call;
	if (call->failed)
		return;
	store_wake(call->store, STORE_STEP_WORK);
	step_watch_published(
		store_step_watch(call->store), change->run.bucket.name, change->run.name);
}
