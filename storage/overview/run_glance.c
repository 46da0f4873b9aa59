/* The names come first, in one query over all buckets; then each run is read by its number. A run
 * that ends in between is left out. */
#include "storage/overview/run_glance.h"

#include "storage/run_tables/replica_table.h"
#include "storage/run_tables/run_row.h"
#include "storage/run_tables/step_lag.h"
#include "storage/run_tables/step_row.h"
#include "storage/run_tables/step_sizes.h"
#include "storage/runs/run.h"

enum { GLANCE_ARENA_BYTES = 16 * 1024 * 1024 };

struct glances {
	struct call call;
	struct run_place_scan scan;
	bool names_only;
	struct run_glance *runs;
	size_t count;
};

static enum call_next run_glance_help(struct call *call, struct error *err);
static int look(struct glances *glances, struct db *db, struct error *err);
static int take_names(const struct run_place *place, struct run_glance *out);
static int read_one(struct store *store, struct db *db, const struct run_place *place,
	struct arena *arena, struct run_glance *out, struct error *err);
static int read_head(struct store *store, struct db *db, struct run_glance *out, struct error *err);
static enum step_proof proof_of(enum step_verified verified);
static int read_fleet(
	struct store *store, struct db *db, struct run_glance *out, struct error *err);
static int find_lag(struct store *store, struct db *db, const struct replica_fleet *fleet,
	struct run_glance *out, struct error *err);
static uint64_t target_of(const struct run_message *run);

static const struct call_kind glance_kind = {.stages = {{.help = run_glance_help}}};

struct call *run_glance_call(struct store *store, const struct run_glance_scan *scan)
{
	struct glances *const glances =
		call_new(sizeof(*glances), &glance_kind, store, GLANCE_ARENA_BYTES);
	ASSERT(scan->limit > 0);
	glances->scan = (struct run_place_scan){
		.after_bucket = arena_copy(glances->call.arena, scan->after_bucket),
		.after = arena_copy(glances->call.arena, scan->after),
		.limit = scan->limit};
	glances->names_only = scan->names_only;
	return &glances->call;
}

const struct run_glance *run_glance_result(const struct call *call, size_t *out_count)
{
	const struct glances *const glances = (const struct glances *)call;
	ASSERT(call->kind == &glance_kind && !call->failed);
	*out_count = glances->count;
	return glances->runs;
}

int run_glance_find(struct store *store, int64_t run, struct arena *arena, struct run_glance *out,
	struct error *err)
{
	struct run_place place;
	struct db *const db = store_snapshot_take(store, err);
	int found = db == NULL ? -1 : run_row_find_place(db, run, arena, &place, err);
	if (found == 1)
		found = read_one(store, db, &place, arena, out, err);
	store_snapshot_give(store, db);
	if (found == 1 && arena_overflowed(arena))
		return error_set(
			err, ERROR_NO_MEMORY, "The request's memory ran out while reading a run.");
	return found;
}

static enum call_next run_glance_help(struct call *call, struct error *err)
{
	struct glances *const glances = (struct glances *)call;
	struct db *const db = store_snapshot_take(call->store, err);
	const int result = db == NULL ? -1 : look(glances, db, err);
	store_snapshot_give(call->store, db);
	return result == 0 ? CALL_NEXT : CALL_FAILS;
}

static int look(struct glances *glances, struct db *db, struct error *err)
{
	struct arena *const arena = glances->call.arena;
	const size_t limit = glances->scan.limit;
	struct run_place *const places = arena_take_array(arena, limit, sizeof(*places));
	size_t count;
	glances->runs = arena_take_array(arena, limit, sizeof(*glances->runs));
	if (places == NULL || glances->runs == NULL)
		return error_set(
			err, ERROR_NO_MEMORY, "The request's memory ran out while listing runs.");
	if (run_row_list_all(db, &glances->scan, arena, places, &count, err) != 0)
		return -1;
	for (size_t i = 0; i < count; i++) {
		struct run_glance *const glance = &glances->runs[glances->count];
		const int found = glances->names_only
			? take_names(&places[i], glance)
			: read_one(glances->call.store, db, &places[i], arena, glance, err);
		if (found < 0)
			return -1;
		glances->count += (size_t)found;
	}
	return arena_overflowed(arena) ? error_set(err, ERROR_NO_MEMORY,
						 "The request's memory ran out while listing runs.")
				       : 0;
}

static int take_names(const struct run_place *place, struct run_glance *out)
{
	*out = (struct run_glance){.id = place->id,
		.bucket = place->bucket.id,
		.owner = place->owner,
		.run = {.bucket = place->bucket.name, .run = place->name}};
	return 1;
}

/* 1, 0 when the run has ended, -1. */
static int read_one(struct store *store, struct db *db, const struct run_place *place,
	struct arena *arena, struct run_glance *out, struct error *err)
{
	const struct run_ref ref = {.bucket = place->bucket, .name = place->name};
	struct error why = {0};
	(void)take_names(place, out);
	if (run_find_in(db, &ref, arena, &out->run, &why) != 0) {
		if (why.kind == ERROR_NO_RUN || why.kind == ERROR_NO_BUCKET)
			return 0;
		*err = why;
		return -1;
	}
	return read_head(store, db, out, err) != 0 || read_fleet(store, db, out, err) != 0 ? -1 : 1;
}

static int read_head(struct store *store, struct db *db, struct run_glance *out, struct error *err)
{
	struct step_row step;
	const int found =
		out->run.has_head ? step_row_find(db, out->id, out->run.head, &step, err) : 0;
	if (found != 1)
		return found;
	out->head_created_ms = step.created_ms;
	out->verified = proof_of(step.verified);
	out->has_delta = step.has_form[STEP_DELTA];
	out->delta_bytes = step.form_bytes[STEP_DELTA];
	if (step.state != STEP_KEPT)
		return 0;
	return step_sizes_find(store_parts(store)->step_sizes, db, &step, &out->full_bytes, err);
}

static enum step_proof proof_of(enum step_verified verified)
{
	static const enum step_proof proofs[] = {[STEP_UNPROVEN] = STEP_PROOF_PENDING,
		[STEP_PROVEN] = STEP_PROOF_OK,
		[STEP_FAILED] = STEP_PROOF_FAILED,
		[STEP_UNCHECKED] = STEP_PROOF_NONE};
	return (size_t)verified < sizeof(proofs) / sizeof(proofs[0]) ? proofs[verified]
								     : STEP_PROOF_NONE;
}

static int read_fleet(struct store *store, struct db *db, struct run_glance *out, struct error *err)
{
	struct replica_fleet fleet;
	replica_table_fleet(store_parts(store)->replicas, out->id, target_of(&out->run), &fleet);
	out->counts = fleet.counts;
	out->behind = fleet.behind;
	out->ahead = fleet.ahead;
	return out->run.has_head && fleet.counts.has_oldest ? find_lag(store, db, &fleet, out, err)
							    : 0;
}

/* The farthest one below the step to serve and, during a rollback, the farthest one above it. */
static int find_lag(struct store *store, struct db *db, const struct replica_fleet *fleet,
	struct run_glance *out, struct error *err)
{
	const struct step_lag_scale scale = {.run = out->id,
		.target = target_of(&out->run),
		.rollback_ms = out->run.rollback.created_ms,
		.now_ms = store_now_ms(store)};
	const bool has_above = out->run.rollback.is_on && fleet->newest > scale.target;
	struct step_lag below = {0};
	struct step_lag above = {0};
	if ((fleet->counts.oldest < scale.target &&
		    step_lag_find(db, &scale, fleet->counts.oldest, &below, err) != 0) ||
		(has_above && step_lag_find(db, &scale, fleet->newest, &above, err) != 0))
		return -1;
	out->lag_steps = below.steps > above.steps ? below.steps : above.steps;
	out->lag_seconds = below.seconds > above.seconds ? below.seconds : above.seconds;
	return 0;
}

/* The step to serve; 0 before the first one. */
static uint64_t target_of(const struct run_message *run)
{
	return run->rollback.is_on ? run->rollback.step : run->head;
}
