/* What the step worker (storage/step_jobs/step_worker.h) does: kinds of jobs, in a table. A job is
 * known by what the catalog lacks: a kind finds its next one there, and once it has run it is not
 * found again. So a restart, or a kill in the middle, goes on where it was. To add a kind: a struct
 * step_job_kind in a file of its own, and its row in step_job.c, more urgent kinds first. Internal
 * to storage. */
#ifndef STORAGE_STEP_JOBS_STEP_JOB_H
#define STORAGE_STEP_JOBS_STEP_JOB_H

#include "storage/core/store.h"
#include "storage/db/db.h"

struct step_job_kind;
struct step_work;

struct step_job {
	const struct step_job_kind *kind;
	int64_t run; /* row of `runs` */
	/* row that the job is about, of `steps` for most kinds; jobs are found in its order */
	int64_t id;
	uint64_t step;
	uint64_t from;   /* kinds that are about two steps; else 0 */
	int64_t account; /* the run's, once the worker knows it; 0: it does not */
};
struct step_job_kind {
	const char *name; /* in the log */
	/* The first job with an id above `after`: 1, 0, -1. Through a reader of the catalog, so
	 * quick. NULL: only asked for. The kind is set by the caller. */
	int (*find_next)(struct db *db, int64_t after, struct step_job *out, struct error *err);
	/* On the worker's thread. 0: done, or not needed any more. -1: it is logged, put aside, and
	 * tried again later; busy when the worker stops. */
	int (*run)(struct step_work *work, const struct step_job *job, struct error *err);
};

/* Ends with NULL. */
extern const struct step_job_kind *const step_job_kinds[];

/* What a job works with, for the time of its run. */
struct step_work {
	struct store *store;
	unsigned threads; /* for decoding */
	/* Sleeps as the worker's rate asks for after so many bytes of weights; false when the
	 * worker stops: give up with step_work_stopped. From any thread of the job. */
	bool (*spend)(struct step_work *work, uint64_t bytes);
};
/* busy: "the server is stopping". -1. */
int step_work_stopped(struct error *err);

#endif
