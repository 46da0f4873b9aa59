/* What the replicas of a run do, all together, kept up to date with each report, so that a reader
 * does not look at them all. Its owner locks. Zeroed memory counts nothing. Internal to storage. */
#ifndef STORAGE_RUN_TABLES_REPLICA_COUNTS_H
#define STORAGE_RUN_TABLES_REPLICA_COUNTS_H

#include "storage/run_tables/replica_table.h"

/* What counts of a replica. */
struct replica_counted {
	bool expired; /* then the rest does not count */
	enum replica_state state;
	bool has_step;
	uint64_t step;
};
struct step_holders {
	uint64_t step;
	size_t replicas; /* with a lease that hold it; above 0 */
};
struct replica_counts {
	struct fleet_counts all;
	struct step_holders *steps; /* in rising order */
	size_t step_count;
	size_t step_capacity;
};

void replica_counts_release(struct replica_counts *counts);
void replica_counts_add(struct replica_counts *counts, const struct replica_counted *replica);
/* `replica` says what it said when it was added. */
void replica_counts_take(struct replica_counts *counts, const struct replica_counted *replica);
/* Around the step to serve. Costs one look at each step that is held. */
void replica_counts_fleet(
	const struct replica_counts *counts, uint64_t target, struct replica_fleet *out);

#endif
