/* Named pins of a run: a step that is pinned is kept, and the way to it, until the pin is removed
 * or runs out by the server's clock. */
#ifndef STORAGE_RUNS_PIN_H
#define STORAGE_RUNS_PIN_H

#include "storage/runs/run.h"
#include "wire/pin_message.h"

/* Sets or moves it; its outcome has the pin. no_run, no_step, collected, invalid (the name), busy
 * (PINS_OF_RUN_MAX). `pin->name` is its name. */
struct run_change *pin_put_start(struct store *store, struct span bucket, struct span run,
	const struct pin_message *pin, void (*done)(void *owner), void *owner);
/* not_found when there is none. */
struct run_change *pin_remove_start(struct store *store, struct span bucket, struct span run,
	struct span name, void (*done)(void *owner), void *owner);
int pin_find(struct store *store, struct span bucket, struct span run, struct span name,
	struct pin_message *out, struct error *err);
int pin_list(struct store *store, struct span bucket, struct span run, struct arena *arena,
	struct pin_message **out, size_t *out_count, struct error *err);

#endif
