/* The table `step_objects`: which version each object of a step's forms is. A row here pins its
 * version (invariant 6). Internal to storage. */
#ifndef STORAGE_RUNS_STEP_PIN_H
#define STORAGE_RUNS_STEP_PIN_H

#include "storage/db/db.h"
#include "wire/step_message.h"

enum { STEP_PIN_RELEASE_ROWS = 64 };
/* The column `form`. Those of published forms are their kinds'. */
enum step_pin_form {
	STEP_PIN_ANCHOR = STEP_ANCHOR,
	STEP_PIN_DELTA = STEP_DELTA,
	STEP_PIN_MADE = 2,
	STEP_PIN_VIEW_TRL = 3,
	STEP_PIN_VIEW_SLIME = 4
};

int step_pin_add(struct db *db, int64_t step, enum step_pin_form form, struct span name,
	int64_t version, struct error *err);
/* 1 found, 0 absent, -1. */
int step_pin_find(struct db *db, int64_t step, enum step_pin_form form, struct span name,
	int64_t *out_version, struct error *err);
struct step_pin {
	struct span name;
	int64_t version;
};
/* All objects of a form, sorted by name. */
int step_pin_list(struct db *db, int64_t step, enum step_pin_form form, struct arena *arena,
	struct step_pin **out, size_t *out_count, struct error *err);
/* Lets go of one object; a version that nothing else leads to is removed. One that the server made
 * is removed even when its key shows it. */
int step_pin_let_go(struct db *db, int64_t step, enum step_pin_form form,
	const struct step_pin *pin, struct error *err);
/* Lets go of up to STEP_PIN_RELEASE_ROWS objects of a step; versions that nothing else leads to are
 * removed. *out_more: some are left. */
int step_pin_release(struct db *db, int64_t step, bool *out_more, struct error *err);

#endif
