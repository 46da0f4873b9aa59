/* Hot-loads: a trainer puts a snapshot's objects below a prefix and then names its identity; that
 * becomes the next step of the run whose settings bind the deployment. docs/protocol/steps.md,
 * "Hot-loads". Any thread. */
#ifndef STORAGE_RUNS_HOT_LOAD_H
#define STORAGE_RUNS_HOT_LOAD_H

#include "storage/run_tables/deployment_row.h"
#include "storage/runs/run.h"

/* The run that a deployment of an account, or one in a bucket, is bound to, its texts in the arena.
 * no_run. */
int hot_load_find(struct store *store, struct span deployment, const struct deployment_place *among,
	struct arena *arena, struct run_ref *out, struct error *err);

/* One path segment, 1 to 256 bytes, no control characters, neither "." nor "..". */
int hot_load_check_identity(struct span identity, struct error *err);

struct hot_load_params { /* texts are copied */
	struct run_ref run;
	struct span deployment;
	struct span identity;
	bool has_base;    /* incremental */
	struct span base; /* the identity it builds on */
};
/* The snapshot is noted, the step worker makes a step of it. An identity that is known stays what
 * it is (one that failed is tried again). base_missing when the base is unknown; head_moved when
 * the newest snapshot is another; no_run when the deployment was bound to another run meanwhile. */
struct call *hot_load_call(struct store *store, const struct hot_load_params *params);

/* What a step is called by those who hot-load: its identity, or "step_%06d" when it was published
 * otherwise. */
int hot_load_identity(struct store *store, const struct run_ref *run, uint64_t step,
	struct arena *arena, struct span *out, struct error *err);
/* The newest snapshot that was asked for. */
struct hot_load_newest {
	bool is_known;
	struct span identity;
	bool is_step;
	bool failed;
	struct span error;
};
int hot_load_find_newest(struct store *store, const struct run_ref *run, struct arena *arena,
	struct hot_load_newest *out, struct error *err);

#endif
