/* An anchor that the server made, as a form of its step (step_anchor.h says how it is made).
 * Internal to storage. */
#ifndef STORAGE_RUNS_STEP_ANCHOR_FORM_H
#define STORAGE_RUNS_STEP_ANCHOR_FORM_H

#include "storage/run_tables/step_row.h"
#include "storage/runs/run.h"

/* As a path's link fetches it: objects below "steps/{n}/objects/anchor/", relative to the run. */
int step_anchor_form(struct db *db, const struct step_row *row, struct arena *arena,
	struct step_form *out, struct error *err);

#endif
