/* The table `replicas`: the last report of each replica that was saved (storage/runs/replica.h says
 * when reports are saved). Internal to storage. */
#ifndef STORAGE_RUN_TABLES_REPLICA_ROW_H
#define STORAGE_RUN_TABLES_REPLICA_ROW_H

#include "storage/db/db.h"

struct replica_row {
	int64_t run;
	struct span id;
	struct span document; /* replica_message_print_request */
	int64_t lease_ms;
	int64_t since_ms; /* wall clock, like updated_ms */
	int64_t updated_ms;
};

int replica_row_put(struct db *db, const struct replica_row *row, struct error *err);
int replica_row_remove(struct db *db, int64_t run, struct span id, struct error *err);
/* All rows of all runs that have not ended: db_step and replica_row_read (texts are valid until the
 * next step), then db_reset. */
struct db_statement *replica_row_scan(struct db *db, struct error *err);
void replica_row_read(struct db_statement *scan, struct replica_row *out);
/* Removes some rows of a run; *out_more tells whether there may be more. */
int replica_row_remove_of_run(struct db *db, int64_t run, bool *out_more, struct error *err);

#endif
