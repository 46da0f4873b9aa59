/* Folds are made by the step worker: both ends are read block by block, and what lies between them
 * is encoded anew as one delta. Two kinds, since somebody waits for direct ones. Internal to
 * storage. */
#ifndef STORAGE_STEP_JOBS_FOLD_JOB_H
#define STORAGE_STEP_JOBS_FOLD_JOB_H

#include "storage/step_jobs/step_job.h"

extern const struct step_job_kind fold_direct_job;
/* the newest first: what leads to the head serves most readers */
extern const struct step_job_kind fold_skip_job;

#endif
