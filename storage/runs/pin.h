/* Named pins of a run. A pin keeps its step, and the path to it, until it is removed or expires by
 * the server's clock. */
#ifndef STORAGE_RUNS_PIN_H
#define STORAGE_RUNS_PIN_H

#include "storage/runs/run.h"
#include "wire/pin_message.h"

/* Sets or moves the pin named `pin->name`. Fails with no_run, no_step, collected, invalid (the
 * name) or busy (PINS_OF_RUN_MAX). */
struct call *pin_put_call(
	struct store *store, const struct run_ref *run, const struct pin_message *pin);
/* The pin as it is now. */
const struct pin_message *pin_put_result(const struct call *call);
/* This and pin_find fail with not_found when there is no such pin. */
struct call *pin_remove_call(struct store *store, const struct run_ref *run, struct span name);
int pin_find(struct store *store, const struct run_ref *run, struct span name,
	struct pin_message *out, struct error *err);
int pin_list(struct store *store, const struct run_ref *run, struct arena *arena,
	struct pin_message **out, size_t *out_count, struct error *err);

#endif
