/* The table `webhook_events`: events that are still to be sent to the webhooks of runs. Internal to
 * storage. */
#ifndef STORAGE_RUN_TABLES_WEBHOOK_ROW_H
#define STORAGE_RUN_TABLES_WEBHOOK_ROW_H

#include "base/arena.h"
#include "storage/db/db.h"

enum { WEBHOOK_EVENTS_MAX = 1000 }; /* of one run; above it the oldest are dropped */

struct webhook_event {
	int64_t id;
	int64_t run;
	struct span body;
	uint64_t attempts;
	int64_t due_ms;
};
/* *out_dropped: the number of older events that were dropped. */
int webhook_row_add(struct db *db, int64_t run, struct span body, int64_t due_ms,
	uint64_t *out_dropped, struct error *err);
struct webhook_run {
	int64_t run;
	int64_t account; /* 0: the run does not exist any more */
};
/* The next run with an id above `after` that has events, due or not. 1, 0, -1. */
int webhook_row_next_run(struct db *db, int64_t after, struct webhook_run *out, struct error *err);
/* The event of the run that is due first, its body copied into the arena. 1, 0 when none is due
 * yet, -1. */
int webhook_row_find_due(struct db *db, int64_t run, int64_t now_ms, struct arena *arena,
	struct webhook_event *out, struct error *err);
int webhook_row_count(struct db *db, uint64_t *out, struct error *err); /* of all events */
int webhook_row_postpone(struct db *db, int64_t id, int64_t due_ms, struct error *err);
int webhook_row_remove(struct db *db, int64_t id, struct error *err);
int webhook_row_remove_of_run(struct db *db, int64_t run, struct error *err);

#endif
