/* The leases of all runs, in memory: renewing one touches nothing else. Runs are numbers of
 * `runs.id`, which are never given out again. What a replica says is kept as its JSON, with what
 * retention asks for beside it. A lease runs on the monotonic clock from when the replica was last
 * heard of; after a start each known one runs anew, so nobody loses a lease by a restart.
 * Internally locked; any thread. Internal to storage. */
#ifndef STORAGE_RUN_TABLES_REPLICA_TABLE_H
#define STORAGE_RUN_TABLES_REPLICA_TABLE_H

#include "base/clock.h"
#include "storage/run_tables/replica_row.h"
#include "wire/replica_message.h"

struct replica_table;

enum {
	REPLICAS_OF_RUN_MAX = 65536,
	REPLICAS_MAX = 4 * REPLICAS_OF_RUN_MAX,
	REPLICA_FORGET_MS = 60 * 60 * 1000 /* an expired one is shown for this long */
};

struct replica_table *replica_table_new(const struct clock_source *clock);
void replica_table_free(struct replica_table *table); /* NULL is fine */
/* Everything in the catalog. At start, before others use the table; what a failure leaves out is
 * not known until its replicas are heard of. */
int replica_table_load(struct replica_table *table, struct db *db, struct error *err);
/* Whether all that the catalog had was loaded. Where not, nobody can say of runs of before the
 * start what their replicas hold. */
bool replica_table_is_whole(const struct replica_table *table);

/* What is known of one replica. Texts lie in the arena they were copied to. */
struct replica_entry {
	struct replica_row row;
	bool expired;
};

/* Renews the lease and takes what was said (`row` without times). *out_saved: what the catalog has
 * of it protects at least what this lease protects; otherwise it is to be saved before anybody is
 * told. busy when there are too many. */
int replica_table_put(struct replica_table *table, const struct replica_row *row,
	const struct replica_message *said, bool *out_saved, struct error *err);
/* False when unknown. */
bool replica_table_find(struct replica_table *table, int64_t run, struct span id,
	struct arena *arena, struct replica_entry *out);
void replica_table_remove(struct replica_table *table, int64_t run, struct span id);
void replica_table_remove_run(struct replica_table *table, int64_t run);
/* Up to `limit` behind `after`, in byte order, into `out`; the counts of all of the run into
 * `list`. Returns how many. */
size_t replica_table_page(struct replica_table *table, int64_t run, struct span after, size_t limit,
	struct arena *arena, struct replica_entry *out, struct replica_list_message *list);

/* For retention, of replicas with a lease. The lowest step held, and by whom (`out_id` may be
 * NULL). */
bool replica_table_lowest(struct replica_table *table, int64_t run, uint64_t *out_step,
	char out_id[REPLICA_ID_MAX_BYTES + 1]);
/* Whether one holds just this step. */
bool replica_table_holds(struct replica_table *table, int64_t run, uint64_t step);
/* The different steps wanted by those that hold none, at most `max`; when there are more, the
 * lowest ones. */
size_t replica_table_wanted(
	struct replica_table *table, int64_t run, uint64_t *out_steps, size_t max);

/* Writing behind. Up to `max` that say other than was last taken for saving; and such as were
 * expired for REPLICA_FORGET_MS, which are removed. Texts are copied into the arena. */
struct replica_name {
	int64_t run;
	struct span id;
};
size_t replica_table_unsaved(
	struct replica_table *table, size_t max, struct arena *arena, struct replica_name *out);
size_t replica_table_forget(
	struct replica_table *table, size_t max, struct arena *arena, struct replica_name *out);
/* Saving one: take (false: unknown, its row is to go), write, commit, then tell how it went. */
struct replica_saving {
	bool known;
	bool has_step;
	uint64_t step;
};
bool replica_table_take(struct replica_table *table, int64_t run, struct span id,
	struct arena *arena, struct replica_row *out, struct replica_saving *out_saving);
void replica_table_saved(struct replica_table *table, int64_t run, struct span id,
	const struct replica_saving *saving, bool failed);
/* Replicas with a lease, of all runs. */
size_t replica_table_count(struct replica_table *table);

#endif
