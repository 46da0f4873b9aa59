/* The background work of runs: one thread that proves published steps, makes anchors of them, and
 * whatever else step_job.c lists. It is woken by publishes and at start, finds its jobs in the
 * catalog, and works them off one by one at a bounded rate; without any it sleeps. A job that fails
 * is logged, put aside for a minute, and holds up no other. Any thread. Internal to storage, but
 * for quiesce. */
#ifndef STORAGE_STEP_JOBS_STEP_WORKER_H
#define STORAGE_STEP_JOBS_STEP_WORKER_H

#include "storage/step_jobs/step_job.h"

struct step_worker_options {
	bool enabled;              /* false: it does only what it is asked for */
	uint64_t bytes_per_second; /* of weights decoded; 0: as fast as it goes */
	unsigned threads;          /* that decode; 0: 1 */
	int64_t aside_ms;          /* until what failed is tried again; 0: a minute */
};

struct step_worker;

struct step_worker *step_worker_start(
	struct store *store, const struct step_worker_options *options);
/* No further job begins, the one that runs gives up, and asking is refused from here on. */
void step_worker_quiesce(struct step_worker *worker);
/* NULL is fine; before the committer and the helpers stop. store_wake may still come, from the last
 * changes, until it is freed. */
void step_worker_stop(struct step_worker *worker);
/* NULL is fine; after the committer has stopped */
void step_worker_free(struct step_worker *worker);

/* A job that a request waits for, before all others. Asking twice is asking once. 0: it is queued
 * or runs; step_worker_waiters says how to wait. -1: it failed within the last minute, with what it
 * failed of; busy: too much is asked for, or the server stops. */
int step_worker_ask(struct step_worker *worker, const struct step_job *job, struct error *err);
/* The run name under which, with an empty bucket, base/thread/step_watch.h wakes waiters whenever a
 * job that was asked for has ended. */
struct span step_worker_waiters(void);

/* For tests: looks for jobs, enabled or not, and returns when none is left but those put aside.
 * *out_failed: of these. */
void step_worker_settle(struct step_worker *worker, size_t *out_failed);

#endif
