/* Replicas of a run: workers that hold, fetch or want a step and report so before their lease
 * expires. A lease keeps the step that its replica holds and the path from there
 * (storage/runs/step_keep.h). Renewing a lease touches only memory. A new replica, and one that
 * needs more than it reported before, are saved in the catalog before the reply; all other reports
 * are saved some seconds later. */
#ifndef STORAGE_RUNS_REPLICA_H
#define STORAGE_RUNS_REPLICA_H

#include "storage/runs/run.h"
#include "wire/replica_message.h"

struct replica_ref {
	struct run_ref run;
	struct span id;
};
/* Renews the lease and stores the report. *out is the whole answer. 1: it may be given; 0: only
 * after replica_save_call has succeeded; -1: no_bucket, no_run, no_step (the run does not have the
 * step that the replica holds), invalid, busy (too many replicas). */
int replica_put(struct store *store, const struct replica_ref *ref,
	const struct replica_message *report, struct arena *arena, struct replica_message *out,
	struct error *err);
/* Saves the replica's report in the catalog. */
struct call *replica_save_call(struct store *store, const struct replica_ref *ref);
/* Fails with not_found when the run has no such replica. */
int replica_find(struct store *store, const struct replica_ref *ref, struct arena *arena,
	struct replica_message *out, struct error *err);
/* Up to `limit` replicas, at least 1, whose ids follow `after`, in byte order. */
struct replica_scan {
	struct run_ref run;
	struct span after;
	size_t limit;
};
int replica_list(struct store *store, const struct replica_scan *scan, struct arena *arena,
	struct replica_list_message *out, struct error *err);
/* For readers that follow the replicas of a run and want only what changed. A round begins with
 * replica_follow_look and is about what had changed by then, so it ends however many report
 * meanwhile. */
struct replica_follow {
	struct run_ref run; /* borrowed */
	int64_t id;         /* of the run's row */
	uint64_t told;      /* changes of replicas up to here are told */
	uint64_t gone;      /* removals up to here are told */
	uint64_t until;     /* what the round is about */
	uint64_t last;      /* the run's last change, when the round began */
	uint64_t of_all;    /* the last change of all runs at that time */
};
/* From now on. Fails with no_bucket or no_run. */
int replica_follow_begin(struct store *store, const struct run_ref *run, struct replica_follow *out,
	struct error *err);
/* Begins a round. Whether anything changed since the last one began; cheap. */
bool replica_follow_look(struct store *store, struct replica_follow *follow);
/* Up to `limit` ids of replicas that were removed and are not there again. False when not all of
 * them are known any more; then the follower begins anew. */
bool replica_follow_removed(struct store *store, struct replica_follow *follow, struct arena *arena,
	struct span *out, size_t limit, size_t *out_count);
/* Up to out->count replicas that changed, in the order of their changes, into out->replicas, which
 * has room for them; sets out->count, and the counts of the whole run as replica_list does.
 * *out_more: there are more in this round. Fails with no_bucket or no_run, also when another run
 * has the name by now. */
int replica_follow_read(struct store *store, struct replica_follow *follow, struct arena *arena,
	struct replica_list_message *out, bool *out_more, struct error *err);

/* Runs whose fleets changed in more than the times of reports. *after is what is known already and
 * `until` a number of replica_last_move, as struct replica_follow has them. Up to `limit`, at
 * least 1. */
size_t replica_moved_runs(
	struct store *store, uint64_t *after, uint64_t until, int64_t *out_runs, size_t limit);
uint64_t replica_last_move(struct store *store);

/* Fails with not_found when the run has no such replica. */
struct call *replica_remove_call(struct store *store, const struct replica_ref *ref);

/* One round of work behind the requests (storage/step_jobs/fleet_worker.h): notes leases that have
 * ended, saves reports and forgets replicas whose lease expired long ago. Blocks. */
int replica_tidy(struct store *store, struct error *err);

#endif
