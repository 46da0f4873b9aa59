/* The table `replicas`: what each replica last said, as far as it was written down
 * (storage/runs/replica.h says when). Internal to storage. */
#ifndef STORAGE_RUN_TABLES_REPLICA_ROW_H
#define STORAGE_RUN_TABLES_REPLICA_ROW_H

#include "storage/db/db.h"

struct replica_row {
	int64_t run;
	struct span id;
	struct span document; /* replica_message_print_request */
	int64_t lease_ms;
	int64_t since_ms; /* wall clock, as below */
	int64_t updated_ms;
};

int replica_row_put(struct db *db, const struct replica_row *row, struct error *err);
int replica_row_remove(struct db *db, int64_t run, struct span id, struct error *err);
/* All rows of all runs that have a name: db_step, replica_row_read (texts valid until the next
 * step), db_reset. */
struct db_statement *replica_row_scan(struct db *db, struct error *err);
void replica_row_read(struct db_statement *scan, struct replica_row *out);
/* Some of a run's; *out_more: some are left. */
int replica_row_remove_of_run(struct db *db, int64_t run, bool *out_more, struct error *err);

#endif
