/* The kinds of job that make folds: both ends are read block by block, and what lies between them
 * is encoded again as one delta. There are two kinds, because readers wait for direct folds.
 * Internal to storage. */
#ifndef STORAGE_STEP_JOBS_FOLD_JOB_H
#define STORAGE_STEP_JOBS_FOLD_JOB_H

#include "storage/step_jobs/step_job.h"

extern const struct step_job_kind fold_direct_job;
/* The newest comes first: folds that lead to the head serve most readers. */
extern const struct step_job_kind fold_skip_job;

#endif
