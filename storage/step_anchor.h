/* Anchors that the server makes: every kept, proven step without an anchor of its own can be read whole, as derived versions upon a step nearby. The
 * newest one of a run is made after its proof and listed under "{run}/anchors/step_%06d/{file}"; others are made when somebody asks for them, and go
 * again after a while. In the catalog they are form 2 of the step (STEP_PIN_MADE). Internal to storage, but for what run.h declares. */
#ifndef STORAGE_STEP_ANCHOR_H
#define STORAGE_STEP_ANCHOR_H

#include "storage/run.h"
#include "storage/step_job.h"
#include "storage/step_row.h"
#include "storage/run.h"

/* Makes what `wants_made` says, and what is asked for. */
extern const struct step_job_kind step_anchor_job;
/* Lets those go that nothing wants any more. */
extern const struct step_job_kind step_anchor_drop_job;

enum { STEP_ANCHOR_KEY_BYTES = RUN_NAME_MAX_BYTES + sizeof("/anchors/step_18446744073709551615/") + STEP_NAME_MAX_BYTES };
/* NUL-terminated. */
size_t step_anchor_key(struct span run, uint64_t step, struct span file, char out[STEP_ANCHOR_KEY_BYTES]);
/* The other way round; false when the key is none. */
bool step_anchor_key_parse(struct span key, struct span *out_run, uint64_t *out_step, struct span *out_file);

/* The made anchor as a path's link fetches it: objects below "steps/{n}/objects/anchor/", relative to the run. */
int step_anchor_form(struct db *db, const struct step_row *row, struct arena *arena, struct step_form *out, struct error *err);

/* Inside a change of a client: denied when the key lies below "{run}/anchors/" of a run that there is. Of a run that adopts a trainer's convention
 * only the keys of made anchors are the server's. */
int step_anchor_guard(struct db *db, int64_t bucket, struct span key, struct error *err);

#endif
