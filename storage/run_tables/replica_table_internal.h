/* What the table of replicas is made of, for its two files: replica_table.c has the leases,
 * replica_changes.c what readers that follow them ask for. */
#ifndef STORAGE_RUN_TABLES_REPLICA_TABLE_INTERNAL_H
#define STORAGE_RUN_TABLES_REPLICA_TABLE_INTERNAL_H

#include "base/thread/lock.h"
#include "storage/run_tables/replica_table.h"

struct replica {
	struct span id; /* owned, like the document */
	struct span document;
	enum replica_state state;
	bool has_step;
	uint64_t step;
	bool has_wanted;
	uint64_t wanted;
	int64_t lease_ms;
	int64_t heard_ms; /* monotonic */
	int64_t since_ms; /* wall */
	int64_t updated_ms;
	uint64_t change;        /* number of its last change */
	struct replica *before; /* the next earlier and later change in the run; NULL: none */
	struct replica *behind;
	bool was_expired; /* the end of its lease has a change */
	bool unsaved;     /* its report differs from the one that was last taken for saving */
	bool saved;       /* the catalog has a row of it, with: */
	bool saved_has_step;
	uint64_t saved_step;
	int64_t saved_lease_ms;
};
struct replica_run {
	int64_t run;
	struct replica **replicas;
	size_t count;
	size_t capacity;
	struct replica *last_changed; /* by the numbers of their changes */
	uint64_t change;              /* number of the last change */
	uint64_t move;                /* of the last that was more than a repeated report */
	struct replica_run *before;   /* the run with the next earlier and later move; NULL: none */
	struct replica_run *behind;
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
	size_t total;                   /* replicas of all runs */
	size_t ended;                   /* those with was_expired */
	uint64_t change;                /* number of the last change */
	struct replica_run *last_moved; /* by the numbers of their moves */
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
/* The seconds since the earliest last report of a replica with a lease; false: there is none. */
bool replica_table_oldest_report(const struct replica_table *table, const struct replica_run *run,
	int64_t now, uint64_t *out_s);

/* Gives the replica the next number, behind all others of its run. A move is more than a repeated
 * report. */
void replica_changes_note(struct replica_table *table, struct replica_run *run,
	struct replica *replica, bool is_move);
/* Before the replica is freed. */
void replica_changes_note_removal(
	struct replica_table *table, struct replica_run *run, struct replica *replica);
/* Before the run is freed. */
void replica_changes_unlink_run(struct replica_table *table, struct replica_run *run);

#endif
