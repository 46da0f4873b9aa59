/* Hot-loads: a trainer puts the objects of a snapshot below a prefix and then names the snapshot's
 * identity. The snapshot becomes the next step of the run whose settings bind the deployment.
 * docs/protocol/steps.md, "Hot-loads". Any thread. */
#ifndef STORAGE_RUNS_HOT_LOAD_H
#define STORAGE_RUNS_HOT_LOAD_H

#include "storage/run_tables/deployment_row.h"
#include "storage/runs/run.h"

/* The run that the deployment is bound to, in an account or a bucket. Its texts lie in the arena.
 * Fails with no_run. */
int hot_load_find(struct store *store, struct span deployment, const struct deployment_place *among,
	struct arena *arena, struct run_ref *out, struct error *err);

/* invalid unless it is one path segment of 1 to 256 bytes, without control characters, and neither
 * "." nor "..". */
int hot_load_check_identity(struct span identity, struct error *err);

struct hot_load_params { /* texts are copied */
	struct run_ref run;
	struct span deployment;
	struct span identity; /* has passed hot_load_check_identity */
	bool has_base;        /* the snapshot is incremental */
	struct span base;     /* the identity that it builds on */
};
/* Notes the snapshot; the step worker makes a step of it. A known identity stays as it is, but one
 * that failed is tried again. base_missing when the base is unknown; head_moved when another
 * snapshot is the newest; busy when too many wait; no_run when the deployment was bound to another
 * run meanwhile. */
struct call *hot_load_call(struct store *store, const struct hot_load_params *params);

/* The name of a step for clients that hot-load: its identity, or "step_%06d" when it was published
 * by other means. */
int hot_load_identity(struct store *store, const struct run_ref *run, uint64_t step,
	struct arena *arena, struct span *out, struct error *err);
/* The newest snapshot that was named. */
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
