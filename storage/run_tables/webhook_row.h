/* The table `webhook_events`: what is still to be told to the webhooks of runs. Internal to
 * storage. */
#ifndef STORAGE_RUN_TABLES_WEBHOOK_ROW_H
#define STORAGE_RUN_TABLES_WEBHOOK_ROW_H

#include "base/arena.h"
#include "storage/db/db.h"

enum { WEBHOOK_EVENTS_MAX = 1000 }; /* of one run; the oldest give way */

struct webhook_event {
	int64_t id;
	int64_t run;
	struct span body;
	uint64_t attempts;
	int64_t due_ms;
};
/* *out_dropped: how many gave way. */
int webhook_row_add(struct db *db, int64_t run, struct span body, int64_t due_ms,
	uint64_t *out_dropped, struct error *err);
struct webhook_run {
	int64_t run;
	int64_t account; /* 0: the run is gone */
};
/* The next run above `after` of which something waits, due or not: 1, 0, -1. */
int webhook_row_next_run(struct db *db, int64_t after, struct webhook_run *out, struct error *err);
/* What of the run is due first, its body in the arena: 1, 0 when nothing is due yet, -1. */
int webhook_row_find_due(struct db *db, int64_t run, int64_t now_ms, struct arena *arena,
	struct webhook_event *out, struct error *err);
int webhook_row_postpone(struct db *db, int64_t id, int64_t due_ms, struct error *err);
int webhook_row_remove(struct db *db, int64_t id, struct error *err);
int webhook_row_remove_of_run(struct db *db, int64_t run, struct error *err);

#endif
