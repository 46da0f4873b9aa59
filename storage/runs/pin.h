/* Named pins of a run: a step that is pinned is kept, and the way to it, until the pin is removed
 * or runs out by the server's clock. */
#ifndef STORAGE_RUNS_PIN_H
#define STORAGE_RUNS_PIN_H

#include "storage/runs/run.h"
#include "wire/pin_message.h"

/* Sets or moves it. no_run, no_step, collected, invalid (the name), busy (PINS_OF_RUN_MAX).
 * `pin->name` is its name. */
struct call *pin_put_call(
	struct store *store, const struct run_ref *run, const struct pin_message *pin);
/* The pin as it stands. */
const struct pin_message *pin_put_result(const struct call *call);
/* not_found when there is none. */
struct call *pin_remove_call(struct store *store, const struct run_ref *run, struct span name);
int pin_find(struct store *store, const struct run_ref *run, struct span name,
	struct pin_message *out, struct error *err);
int pin_list(struct store *store, const struct run_ref *run, struct arena *arena,
	struct pin_message **out, size_t *out_count, struct error *err);

#endif
