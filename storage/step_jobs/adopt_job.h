/* The kind of job that turns foreign publishes into steps (storage/run_tables/adopt_note.h,
 * storage/runs/hot_load.h). Internal to storage. */
#ifndef STORAGE_STEP_JOBS_ADOPT_JOB_H
#define STORAGE_STEP_JOBS_ADOPT_JOB_H

#include "storage/step_jobs/step_job.h"

extern const struct step_job_kind adopt_job;

#endif
