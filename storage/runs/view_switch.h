/* Views switched on and off, and what a published step wants of them. docs/protocol/steps.md,
 * "Views". Internal to storage. */
#ifndef STORAGE_RUNS_VIEW_SWITCH_H
#define STORAGE_RUNS_VIEW_SWITCH_H

#include "storage/run_tables/run_row.h"

/* Inside the change that publishes a step: its views are wanted. */
int view_want(struct db *db, const struct run_settings *settings, int64_t step, struct error *err);
/* Inside the change of a run's settings: what was switched on is wanted of all kept steps, what was
 * switched off no more. exists: there are keys in the place of a view that the server has not
 * made. */
int view_switch(struct db *db, const struct run_row *run, struct span run_name,
	const struct run_settings *before, struct error *err);

#endif
