#include "storage/step_jobs/step_job.h"

#include "storage/step_jobs/adopt_job.h"
#include "storage/step_jobs/fold_job.h"
#include "storage/step_jobs/step_anchor.h"
#include "storage/step_jobs/step_proof.h"
#include "storage/step_jobs/view_job.h"

const struct step_job_kind *const step_job_kinds[] = {&fold_direct_job, &adopt_job,
	&step_anchor_job, &step_proof_job, &view_job, &fold_skip_job, &step_anchor_drop_job, NULL};

int step_work_stopped(struct error *err)
{
	return error_set(err, ERROR_BUSY, "The server is stopping.");
}
