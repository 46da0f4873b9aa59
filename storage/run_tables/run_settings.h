/* The settings of a run in the catalog: `runs.settings` holds the document (NULL: a run of before
 * there was one, all defaults), and `runs.keep_steps` the retention, which publishing judges, once
 * more. Written here alone. Internal to storage. */
#ifndef STORAGE_RUN_TABLES_RUN_SETTINGS_H
#define STORAGE_RUN_TABLES_RUN_SETTINGS_H

#include "storage/db/db.h"
#include "wire/run_settings_message.h"

/* Runs of one bucket whose setting "adopt" is not empty. */
enum { ADOPTING_RUNS_MAX = 16 };

/* From a row's two columns. corrupt when the document cannot be read. */
int run_settings_read(struct db *db, struct span document, uint64_t keep_steps,
	struct run_settings *out, struct error *err);
/* The run must be there. exists when another run of the account has the deployment, or too many
 * runs of the bucket adopt. */
int run_settings_store(
	struct db *db, int64_t run, const struct run_settings *settings, struct error *err);

#endif
