/* The jobs of the step worker (storage/step_jobs/step_worker.h): their kinds, in a table. A job is
 * known by what the catalog lacks: its kind finds it there, and does not find it again once it has
 * run. So a restart, or a kill in the middle, continues where the last life stopped. To add a kind,
 * put a struct step_job_kind into a file of its own, and a row into step_job.c; more urgent kinds
 * come first. Internal to storage. */
#ifndef STORAGE_STEP_JOBS_STEP_JOB_H
#define STORAGE_STEP_JOBS_STEP_JOB_H

#include "storage/core/store.h"
#include "storage/db/db.h"

struct step_job_kind;
struct step_work;

struct step_job {
	const struct step_job_kind *kind;
	int64_t run; /* row of `runs` */
	/* the row that the job is about, of `steps` for most kinds; a kind finds its jobs in this
	 * order */
	int64_t id;
	uint64_t step;
	uint64_t from;   /* for kinds that are about two steps; otherwise 0 */
	int64_t account; /* the run's, once the worker has looked; 0: unknown */
};
struct step_job_kind {
	const char *name; /* in the log */
	enum metric_work work;
	/* Finds the first job with an id above `after`: 1, 0, -1. It reads the catalog, so it must
	 * be quick. The caller sets the kind. NULL: the kind has only requested jobs. */
	int (*find_next)(struct db *db, int64_t after, struct step_job *out, struct error *err);
	/* On the worker's thread. 0: done, or not needed any more. -1: the failure is logged, and
	 * the job is put aside and tried again later; busy when the worker stops. */
	int (*run)(struct step_work *work, const struct step_job *job, struct error *err);
};

/* Ends with NULL. */
extern const struct step_job_kind *const step_job_kinds[];

/* Given to a job while it runs. */
struct step_work {
	struct store *store;
	unsigned threads; /* for decoding */
	/* Sleeps as long as the worker's rate asks for so many bytes of weights. False when the
	 * worker stops: give up with step_work_stopped. Any thread of the job. */
	bool (*spend)(struct step_work *work, uint64_t bytes);
};
/* Sets busy, "The server is stopping."; returns -1. */
int step_work_stopped(struct error *err);

#endif
