/* An anchor that the server made, as a form of its step (storage/step_jobs/step_anchor.h says how
 * it is made). Internal to storage. */
#ifndef STORAGE_RUNS_STEP_ANCHOR_FORM_H
#define STORAGE_RUNS_STEP_ANCHOR_FORM_H

#include "storage/run_tables/step_row.h"
#include "storage/runs/run.h"

/* The form that a link of a path fetches. The URLs of its objects begin with
 * "steps/{n}/objects/anchor/", relative to the run. The step must have a made anchor. */
int step_anchor_form(struct db *db, const struct step_row *row, struct arena *arena,
	struct step_form *out, struct error *err);

#endif
