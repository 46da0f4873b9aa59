/* The kind of job that makes views: steps in the layouts of TRL's and slime's readers, as ordinary
 * objects that only the server may write. docs/protocol/steps.md, "Views". Internal to storage. */
#ifndef STORAGE_STEP_JOBS_VIEW_JOB_H
#define STORAGE_STEP_JOBS_VIEW_JOB_H

#include "storage/run_tables/view_key.h"
#include "storage/step_jobs/step_job.h"

extern const struct step_job_kind view_job;
/* The job that makes one view. */
struct step_job view_job_of(const struct view_wanted *wanted);

#endif
