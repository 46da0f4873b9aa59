/* The table `step_objects`: which version each object of a step's forms is. A row keeps its version
 * (invariant 6). It has nothing to do with the named pins of pin.h. Internal to storage. */
#ifndef STORAGE_RUNS_STEP_PIN_H
#define STORAGE_RUNS_STEP_PIN_H

#include "storage/db/db.h"
#include "wire/step_message.h"

enum { STEP_PIN_RELEASE_ROWS = 64 };
/* The column `form`. Published forms have the numbers of their kinds. */
enum step_pin_form {
	STEP_PIN_ANCHOR = STEP_ANCHOR,
	STEP_PIN_DELTA = STEP_DELTA,
	STEP_PIN_MADE = 2, /* the made anchor */
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
/* All objects of a form, sorted by name, in the arena. */
struct step_pins {
	struct step_pin *items;
	size_t count;
};
int step_pin_list(struct db *db, int64_t step, enum step_pin_form form, struct arena *arena,
	struct step_pins *out, struct error *err);
/* Releases one object. A version that nothing else keeps is removed; one that the server made is
 * removed even if its key shows it. */
int step_pin_let_go(struct db *db, int64_t step, enum step_pin_form form,
	const struct step_pin *pin, struct error *err);
/* Releases up to STEP_PIN_RELEASE_ROWS objects of a step, as step_pin_let_go does. *out_more tells
 * whether some may be left. */
int step_pin_release(struct db *db, int64_t step, bool *out_more, struct error *err);

#endif
