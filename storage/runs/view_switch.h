/* Switches views on and off, and wants the views of published steps. docs/protocol/steps.md,
 * "Views". Internal to storage. */
#ifndef STORAGE_RUNS_VIEW_SWITCH_H
#define STORAGE_RUNS_VIEW_SWITCH_H

#include "storage/run_tables/run_row.h"

/* Inside the change that publishes a step: wants its views. */
int view_want(struct db *db, const struct run_settings *settings, int64_t step, struct error *err);
/* Inside the change of a run's settings: a view that was switched on is wanted of the kept steps
 * (view_row_want_all), and one that was switched off is not wanted any more. exists when there are
 * objects in the place of a view that the server did not make. */
int view_switch(struct db *db, const struct run_row *run, struct span run_name,
	const struct run_settings *before, struct error *err);

#endif
