/* The table `step_objects`: which version each object of a step's forms is. A row here pins its version (invariant 6). Internal to storage.
 * */
#ifndef STORAGE_STEP_PIN_H
#define STORAGE_STEP_PIN_H

#include "storage/db.h"
#include "wire/step_message.h"

enum { STEP_PIN_RELEASE_ROWS = 64 };

int step_pin_add(struct db *db, int64_t step, enum step_form_kind form, struct span name, int64_t version, struct error *err);
/* 1 found, 0 absent, -1. */
int step_pin_find(struct db *db, int64_t step, enum step_form_kind form, struct span name, int64_t *out_version, struct error *err);
/* Lets go of up to STEP_PIN_RELEASE_ROWS objects of a step; versions that nothing else leads to are removed. *out_more: some are left. */
int step_pin_release(struct db *db, int64_t step, bool *out_more, struct error *err);

#endif
