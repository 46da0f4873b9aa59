/* The leases of all runs, in memory, so that renewing one touches nothing else. Runs are numbers of
 * `runs.id`, which are never used again. A replica's report is kept as its JSON, beside the values
 * that retention needs. A lease runs on the monotonic clock from the replica's last report. After a
 * start each known lease runs again, so that no replica loses its lease by a restart. Internally
 * locked; any thread. Internal to storage. */
#ifndef STORAGE_RUN_TABLES_REPLICA_TABLE_H
#define STORAGE_RUN_TABLES_REPLICA_TABLE_H

#include "base/clock.h"
#include "storage/run_tables/replica_row.h"
#include "wire/replica_message.h"

struct replica_table;

enum {
	REPLICAS_OF_RUN_MAX = 128 * 1024,
	REPLICAS_MAX = 2 * REPLICAS_OF_RUN_MAX,
	REPLICA_FORGET_MS = 60 * 60 * 1000, /* an expired replica is listed for this long */
	REPLICA_REMOVALS_MAX = 4096 /* the last removals of all runs that readers can learn */
};

struct replica_table *replica_table_new(const struct clock_source *clock);
void replica_table_free(struct replica_table *table); /* NULL is fine */
/* Loads all rows of the catalog. At start, before others use the table. A replica that a failure
 * leaves out is unknown until its next report. */
int replica_table_load(struct replica_table *table, struct db *db, struct error *err);
/* Whether all rows of the catalog were loaded. If not, it is unknown which steps the replicas of
 * runs from before the start hold. */
bool replica_table_is_whole(const struct replica_table *table);

/* A replica as the table knows it. Its texts lie in the arena that the function was given. */
struct replica_entry {
	struct replica_row row;
	bool expired;
};

/* Renews the lease and stores the report (`row` needs no since_ms and updated_ms). *out_saved: the
 * row in the catalog protects at least as much as this lease; otherwise the replica must be saved
 * before the reply. busy when there are too many replicas. */
int replica_table_put(struct replica_table *table, const struct replica_row *row,
	const struct replica_message *report, bool *out_saved, struct error *err);
/* False when the replica is unknown. */
bool replica_table_find(struct replica_table *table, int64_t run, struct span id,
	struct arena *arena, struct replica_entry *out);
void replica_table_remove(struct replica_table *table, int64_t run, struct span id);
void replica_table_remove_run(struct replica_table *table, int64_t run);
/* Up to `limit` replicas of the run whose ids follow `after`, in byte order. */
struct replica_page {
	int64_t run;
	struct span after;
	size_t limit;
};
/* Writes the replicas of the page into `out`, which has room for its limit, and the counts of the
 * whole run into `counts`. Returns the number of replicas. Costs what the page holds. */
size_t replica_table_page(struct replica_table *table, const struct replica_page *page,
	struct arena *arena, struct replica_entry *out, struct fleet_counts *counts);

/* The counts, and what only the step to serve tells about replicas with a lease. */
struct replica_fleet {
	struct fleet_counts counts;
	uint64_t newest; /* the highest step that one holds; 0 where none does */
	uint64_t behind; /* replicas below the step that they are to serve */
	uint64_t ahead;  /* those above it: a rollback takes them back */
};
/* `target` is the step to serve. All zero for a run without replicas. Costs a look at each step
 * that is held. */
void replica_table_fleet(
	struct replica_table *table, int64_t run, uint64_t target, struct replica_fleet *out);

/* For readers that follow the table. Each change of a replica has a number of its own, and the
 * numbers only rise. Changes are a report, also one that says nothing new; the end of a lease, once
 * a count or replica_table_note_expired has seen it; and a removal. A reader that knows all up to a
 * number asks for what came later, and that costs what changed and not the size of the fleet. */
/* The number of the last change in the run (0: it has no replicas), and of the last in all runs. */
uint64_t replica_table_last_change(struct replica_table *table, int64_t run, uint64_t *out_of_all);
struct replica_changes {
	int64_t run;
	uint64_t after; /* changes above this are read; moved behind the last one that was */
	uint64_t until; /* none above this is read: the number of an earlier last change */
	size_t limit;   /* above 0 */
	size_t count;
	bool has_more; /* there are more than the limit */
	/* how many entries of the table were looked at: `count` and one more, and those that a
	 * later change has emptied since the order was last tidied */
	size_t looked_at;
};
/* Writes replicas whose last change came after changes->after into `out`, which has room for the
 * limit, those that changed earliest first. */
void replica_table_changed(struct replica_table *table, struct replica_changes *changes,
	struct arena *arena, struct replica_entry *out);
/* Likewise the ids of removed replicas that are not there again. False when the table no longer has
 * all removals since then; then nothing is read. */
bool replica_table_removed(struct replica_table *table, struct replica_changes *changes,
	struct arena *arena, struct span *out);
/* Up to changes->limit runs in which something but the time of a report changed last, as
 * replica_table_changed tells replicas. changes->run is not used. */
void replica_table_moved(
	struct replica_table *table, struct replica_changes *changes, int64_t *out_runs);
/* The number of the last change that moved a run; it only rises. */
uint64_t replica_table_last_move(struct replica_table *table);
/* Gives replicas whose lease has ended since the last call a change each. */
void replica_table_note_expired(struct replica_table *table);

/* For retention; only replicas with a lease count. The lowest step that one holds, and its id
 * (`out_id` may be NULL). False when none holds a step. */
bool replica_table_lowest(struct replica_table *table, int64_t run, uint64_t *out_step,
	char out_id[REPLICA_ID_MAX_BYTES + 1]);
/* Whether a replica holds exactly this step. */
bool replica_table_holds(struct replica_table *table, int64_t run, uint64_t step);
/* The distinct steps that replicas without a step want, in rising order: at most `max`, and the
 * lowest ones when there are more. Returns their number. */
size_t replica_table_wanted(
	struct replica_table *table, int64_t run, uint64_t *out_steps, size_t max);

/* For writing behind. `unsaved` lists replicas whose report differs from the one that was last
 * taken for saving. `forget` removes replicas that expired REPLICA_FORGET_MS ago and lists them.
 * Each lists up to `max`, with ids copied into the arena, and returns their number. */
struct replica_name {
	int64_t run;
	struct span id;
};
size_t replica_table_unsaved(
	struct replica_table *table, size_t max, struct arena *arena, struct replica_name *out);
size_t replica_table_forget(
	struct replica_table *table, size_t max, struct arena *arena, struct replica_name *out);
/* To save a replica: take it (false: it is unknown, and its row must be removed), write the row,
 * commit, then report the outcome with replica_table_saved. */
struct replica_saving {
	bool known;
	bool has_step;
	uint64_t step;
	int64_t lease_ms;
};
bool replica_table_take(struct replica_table *table, int64_t run, struct span id,
	struct arena *arena, struct replica_row *out, struct replica_saving *out_saving);
void replica_table_saved(struct replica_table *table, int64_t run, struct span id,
	const struct replica_saving *saving, bool failed);
/* The number of replicas with a lease, over all runs. */
size_t replica_table_count(struct replica_table *table);

#endif
