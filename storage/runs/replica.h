/* Replicas of a run: workers that hold, fetch or want a step and say so before their lease runs
 * out. A lease keeps the step that its replica holds and the way from there
 * (storage/runs/step_keep.h). Renewing touches memory alone; the catalog learns of a new replica,
 * and of one that needs more than it said before, before anybody is told, and of all else some
 * seconds later. */
#ifndef STORAGE_RUNS_REPLICA_H
#define STORAGE_RUNS_REPLICA_H

#include "storage/runs/run.h"
#include "wire/replica_message.h"

struct replica_ref {
	struct run_ref run;
	struct span id;
};
/* Renews the lease and takes what `said` says; *out is the whole answer. 1; 0: replica_save_call
 * must have gone well before the answer is given; -1: no_bucket, no_run, no_step (the run has no
 * such step), invalid, busy (too many replicas). */
int replica_put(struct store *store, const struct replica_ref *ref,
	const struct replica_message *said, struct arena *arena, struct replica_message *out,
	struct error *err);
/* Writes down what is known of the replica. */
struct call *replica_save_call(struct store *store, const struct replica_ref *ref);
/* not_found: the run has no such replica. */
int replica_find(struct store *store, const struct replica_ref *ref, struct arena *arena,
	struct replica_message *out, struct error *err);
/* Up to `limit` replicas behind `after`, in byte order of their ids. */
struct replica_scan {
	struct run_ref run;
	struct span after;
	size_t limit;
};
int replica_list(struct store *store, const struct replica_scan *scan, struct arena *arena,
	struct replica_list_message *out, struct error *err);
/* not_found */
struct call *replica_remove_call(struct store *store, const struct replica_ref *ref);

/* One round of what a worker does behind the requests (storage/step_jobs/fleet_worker.h): saves
 * what was put, forgets who is long gone. */
int replica_tidy(struct store *store, struct error *err);

#endif
