/* What the table of replicas is made of, for its two files: replica_table.c has the leases,
 * replica_changes.c what readers that follow them ask for. */
#ifndef STORAGE_RUN_TABLES_REPLICA_TABLE_INTERNAL_H
#define STORAGE_RUN_TABLES_REPLICA_TABLE_INTERNAL_H

#include "base/thread/lock.h"
#include "storage/run_tables/change_order.h"
#include "storage/run_tables/lease_heap.h"
#include "storage/run_tables/replica_counts.h"
#include "storage/run_tables/replica_table.h"

struct replica {
	struct lease lease; /* first; monotonic; in the table's heap unless was_expired */
	struct replica_run *of_run;
	struct span id; /* owned, like the document */
	struct span document;
	enum replica_state state;
	bool has_step;
	uint64_t step;
	bool has_wanted;
	uint64_t wanted;
	int64_t lease_ms;
	int64_t since_ms; /* wall */
	int64_t updated_ms;
	uint64_t change;  /* number of its last change */
	uint64_t told;    /* its number in the reports of its run; 0: its lease has ended */
	bool is_loaded;   /* it has not reported since the start */
	bool was_expired; /* the end of its lease has a change */
	bool is_counted;  /* in the counts of its run, as: */
	struct replica_counted counted;
	bool unsaved; /* its report differs from the one that was last taken for saving */
	bool saved;   /* the catalog has a row of it, with: */
	bool saved_has_step;
	uint64_t saved_step;
	int64_t saved_lease_ms;
};
struct replica_run {
	int64_t run;
	struct replica **replicas;
	size_t count;
	size_t capacity;
	struct replica_counts counts;
	struct change_order order;   /* its replicas, by their last changes */
	struct change_order reports; /* those with a lease, by their last reports */
	int64_t loaded_ms;           /* the earliest report that was loaded */
	uint64_t change;             /* number of the last change */
	uint64_t move;               /* of the last that was more than a repeated report */
};
struct removal {
	uint64_t change;
	int64_t run;
	struct span id; /* owned */
};
struct replica_table {
	const struct clock_source *clock;
	bool is_whole; /* set before others use the table */
	struct lock lock;
	struct replica_run **runs; /* guarded by lock, like all fields below */
	size_t count;
	size_t capacity;
	size_t total;              /* replicas of all runs */
	struct lease_heap leases;  /* of all runs */
	uint64_t change;           /* number of the last change */
	uint64_t move;             /* of the last move of any run */
	struct change_order moved; /* the runs, by their last moves */
	/* removal n lies in slot n modulo the size; NULL until there is one */
	struct removal *removals;
	uint64_t removal_count;
	uint64_t forgotten; /* number of the last change whose removal was pushed out */
};

/* All with the table's lock held. NULL: it is not there. */
struct replica *replica_table_look(const struct replica_table *table, int64_t run, struct span id);
struct replica_run *replica_table_look_run(const struct replica_table *table, int64_t run);
/* Texts are copied into the arena. */
void replica_table_copy(const struct replica_run *run, const struct replica *replica,
	struct arena *arena, struct replica_row *out);
bool replica_table_is_expired(const struct replica *replica, int64_t now);
int64_t replica_table_now(const struct replica_table *table);
/* Adds how old the earliest last report is to the counts of a run. */
void replica_table_add_age(
	const struct replica_table *table, const struct replica_run *run, struct fleet_counts *out);

/* Counts the replica as it is now. */
void replica_table_count_in(struct replica *replica);
/* Gives the replicas whose leases have ended by now a change each, which costs as much as there are
 * of them. Counts are right after that. */
void replica_changes_end_leases(struct replica_table *table);
/* Gives the replica the next number, behind all others of its run. A move is more than a repeated
 * report. */
void replica_changes_note(struct replica_table *table, struct replica *replica, bool is_move);
/* Before the replica is freed. */
void replica_changes_note_removal(struct replica_table *table, const struct replica *replica);
/* Before the run is freed. */
void replica_changes_forget_run(struct replica_table *table, const struct replica_run *run);

#endif
