/* Makes a step of a foreign publish: reads or decodes what its trainer uploaded, computes the
 * digests that the trainer never gave, and publishes the step. Internal to storage. Blocking: for
 * background work. */
#ifndef STORAGE_STEP_JOBS_ADOPT_STEP_H
#define STORAGE_STEP_JOBS_ADOPT_STEP_H

#include "storage/run_tables/adopt_row.h"
#include "storage/step_jobs/step_job.h"

/* An error that step_proof_is_verdict or adopt_step_is_verdict knows says that the publish itself
 * is at fault. After any error nothing was published. */
int adopt_step(struct step_work *work, const struct adoption *adoption, struct error *err);
bool adopt_step_is_verdict(enum error_kind kind);

#endif
