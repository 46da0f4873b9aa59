/* Anchors that the server makes: every kept, proven step without an anchor of its own can be read
 * whole, as derived versions upon a step nearby. The newest one of a run is made after its proof
 * and listed under "{run}/anchors/step_%06d/{file}"; others are made when somebody asks for them,
 * and go again after a while. In the catalog they are form 2 of the step (STEP_PIN_MADE). Internal
 * to storage, but for what run.h declares. */
#ifndef STORAGE_STEP_JOBS_STEP_ANCHOR_H
#define STORAGE_STEP_JOBS_STEP_ANCHOR_H

#include "storage/run_tables/step_anchor_key.h"
#include "storage/runs/run.h"
#include "storage/runs/step_anchor_form.h"
#include "storage/step_jobs/step_job.h"

/* Makes what `wants_made` says, and what is asked for. */
extern const struct step_job_kind step_anchor_job;
/* Lets those go that nothing wants any more. */
extern const struct step_job_kind step_anchor_drop_job;

#endif
