/* The settings of a run in the catalog. `runs.settings` holds the document; it is NULL in runs from
 * before there was one, which have all defaults. `runs.keep_steps` holds the retention once more,
 * because publishing judges it. Only run_settings_store changes them. Internal to storage. */
#ifndef STORAGE_RUN_TABLES_RUN_SETTINGS_H
#define STORAGE_RUN_TABLES_RUN_SETTINGS_H

#include "storage/db/db.h"
#include "wire/run_settings_message.h"

/* The most runs of one bucket whose setting "adopt" is not empty. */
enum { ADOPTING_RUNS_MAX = 16 };

/* Reads the settings from a row's two columns. corrupt when the document cannot be parsed. */
int run_settings_read(struct db *db, struct span document, uint64_t keep_steps,
	struct run_settings *out, struct error *err);
/* The run's row must exist. exists when another run of the account has the deployment, or when too
 * many runs of the bucket adopt. */
int run_settings_store(
	struct db *db, int64_t run, const struct run_settings *settings, struct error *err);

#endif
