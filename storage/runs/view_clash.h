/* Refuses settings under which a trainer whose keys a run adopts (adopt_layout.h) would write where
 * a run of the bucket keeps a view: only the server may write there. The second of the two settings
 * is refused. Runs that have had both since before this check existed go on. Internal to
 * storage. */
#ifndef STORAGE_RUNS_VIEW_CLASH_H
#define STORAGE_RUNS_VIEW_CLASH_H

#include "storage/run_tables/run_row.h"

/* Inside the change of a run's settings, after they are stored: exists when a setting that differs
 * from `before` clashes. */
int view_clash_check(struct db *db, const struct run_row *run, struct span run_name,
	const struct run_settings *before, struct error *err);

#endif
