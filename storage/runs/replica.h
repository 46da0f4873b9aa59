/* Replicas of a run: workers that hold, fetch or want a step and say so before their lease runs
 * out. A lease keeps the step that its replica holds and the way from there
 * (storage/runs/step_keep.h). Renewing touches memory alone; the catalog learns of a new replica,
 * and of one that needs more than it said before, before anybody is told, and of all else some
 * seconds later. */
#ifndef STORAGE_RUNS_REPLICA_H
#define STORAGE_RUNS_REPLICA_H

#include "storage/runs/run.h"
#include "wire/replica_message.h"

/* Renews the lease and takes what `said` says; *out is the whole answer. *out_saved false:
 * replica_save_start must have gone well before it is given. no_bucket, no_run, no_step (the run
 * has no such step), invalid, busy (too many replicas). */
int replica_put(struct store *store, struct span bucket, struct span run, struct span id,
	const struct replica_message *said, struct arena *arena, struct replica_message *out,
	bool *out_saved, struct error *err);
/* Writes down what is known of the replica. */
struct run_change *replica_save_start(struct store *store, struct span bucket, struct span run,
	struct span id, void (*done)(void *owner), void *owner);
/* not_found: the run has no such replica. */
int replica_find(struct store *store, struct span bucket, struct span run, struct span id,
	struct arena *arena, struct replica_message *out, struct error *err);
int replica_list(struct store *store, struct span bucket, struct span run, struct span after,
	size_t limit, struct arena *arena, struct replica_list_message *out, struct error *err);
struct run_change *replica_remove_start(struct store *store, struct span bucket, struct span run,
	struct span id, void (*done)(void *owner), void *owner);

/* One round of what a worker does behind the requests (storage/step_jobs/fleet_worker.h): saves
 * what was put, forgets who is long gone. */
int replica_tidy(struct store *store, struct error *err);

#endif
