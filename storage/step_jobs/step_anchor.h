/* Anchors that the server makes. Every kept, proven step without an anchor of its own can be read
 * whole, as derived versions upon a step nearby. The anchor of a run's newest step is made after
 * its proof and listed under "{run}/anchors/step_%06d/{file}". Others are made on request, and are
 * dropped after a while. In the catalog they are form 2 of the step (STEP_PIN_MADE). Internal to
 * storage, except for what run.h declares. */
#ifndef STORAGE_STEP_JOBS_STEP_ANCHOR_H
#define STORAGE_STEP_JOBS_STEP_ANCHOR_H

#include "storage/run_tables/step_anchor_key.h"
#include "storage/runs/run.h"
#include "storage/runs/step_anchor_form.h"
#include "storage/step_jobs/step_job.h"

/* Makes the anchors that `wants_made` tells of, and those that are requested. */
extern const struct step_job_kind step_anchor_job;
/* Drops made anchors that nothing wants any more. */
extern const struct step_job_kind step_anchor_drop_job;

#endif
