/* The background work of runs: one thread that proves published steps, makes anchors of them, and
 * does whatever else step_job.c lists. Publishes and the start wake it. It finds its jobs in the
 * catalog, does them one by one at a bounded rate, and sleeps when there are none. A job that fails
 * is logged, put aside for a minute, and holds up no other. Any thread. Internal to storage, except
 * for quiesce. */
#ifndef STORAGE_STEP_JOBS_STEP_WORKER_H
#define STORAGE_STEP_JOBS_STEP_WORKER_H

#include "storage/step_jobs/step_job.h"

struct step_worker_options {
	bool enabled;              /* false: the worker does only requested jobs */
	uint64_t bytes_per_second; /* of weights decoded; 0: as fast as it can */
	unsigned threads;          /* that decode; 0: 1 */
	int64_t aside_ms;          /* until a failed job is tried again; 0: a minute */
};

struct step_worker;

struct step_worker *step_worker_start(
	struct store *store, const struct step_worker_options *options);
/* No further job begins, the present one gives up, and requests are refused from here on. Returns
 * at once. */
void step_worker_quiesce(struct step_worker *worker);
/* NULL is fine. Must come before the committer and the helpers stop. The last changes may still
 * call store_wake until the worker is freed. */
void step_worker_stop(struct step_worker *worker);
/* NULL is fine. Must come after the committer has stopped. */
void step_worker_free(struct step_worker *worker);

/* Requests a job that a caller waits for, ahead of all others. A repeated request changes nothing.
 * 0: the job is queued or runs; step_worker_topic says how to wait for its end. -1: it failed
 * within the last minute, with that failure; or busy: too many jobs are requested, or the server
 * stops. */
int step_worker_ask(struct step_worker *worker, const struct step_job *job, struct error *err);
/* The run name under which base/thread/step_watch.h, with an empty bucket, wakes waiters whenever a
 * requested job has ended. */
struct span step_worker_topic(void);

/* For tests: does all jobs, enabled or not, and returns when none is left but those that were put
 * aside. *out_failed: how many these are. */
void step_worker_settle(struct step_worker *worker, size_t *out_failed);

#endif
