/* The keys of views: a run's steps in the layouts of other trainers. docs/protocol/steps.md,
 * "Views". Internal to storage.
 *
 *   trl     {run}/deltas/step_%06d.safetensors, {run}/anchors/step_%06d.safetensors
 *   slime   {run}/updates/weight_v%06d/... */
#ifndef STORAGE_RUN_TABLES_VIEW_KEY_H
#define STORAGE_RUN_TABLES_VIEW_KEY_H

#include "storage/run_tables/view_row.h"
#include "wire/run_settings_message.h"
#include "wire/step_message.h"

enum {
	VIEW_KEY_BYTES = RUN_NAME_MAX_BYTES + sizeof("/updates/weight_v18446744073709551615/") +
		STEP_NAME_MAX_BYTES
};

/* The name of the setting that turns a view on, and whether it is on. */
const char *view_key_setting(enum view_kind kind);
bool view_key_is_on(const struct run_settings *settings, enum view_kind kind);

/* The beginning of all keys of a view: "{run}/deltas/" or "{run}/updates/". NUL-terminated, like
 * the next two; each returns the length in bytes. */
size_t view_key_prefix(enum view_kind kind, struct span run, char out[VIEW_KEY_BYTES]);
/* The beginning of the keys of a step's objects; for TRL's delta it is the whole key. */
size_t view_key_step(enum view_kind kind, struct span run, uint64_t step, char out[VIEW_KEY_BYTES]);
/* The key of TRL's anchor. */
size_t view_key_anchor(struct span run, uint64_t step, char out[VIEW_KEY_BYTES]);

/* Whether the key lies where a view would be: below "{run}/deltas/" or "{run}/updates/". *out_run
 * is borrowed from the key. */
bool view_key_place(struct span key, struct span *out_run, enum view_kind *out_kind);
/* Whether the key would be that of an object of a view, and of which step. */
bool view_key_parse(
	struct span key, struct span *out_run, enum view_kind *out_kind, uint64_t *out_step);

/* For a change of a client: denied when the key belongs to a view that is on. */
int view_key_guard(struct db *db, int64_t bucket, struct span key, struct error *err);

#endif
