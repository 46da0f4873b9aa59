/* The table `pins`. A pin that has expired counts as absent even before it is swept. Times are
 * milliseconds of the wall clock. Internal to storage. */
#ifndef STORAGE_RUN_TABLES_PIN_ROW_H
#define STORAGE_RUN_TABLES_PIN_ROW_H

#include "storage/db/db.h"
#include "wire/pin_message.h"
#include "wire/replica_message.h"

/* A pin's name has the form of a replica's id; one byte more for the NUL. */
enum { PIN_NAME_BYTES = REPLICA_ID_MAX_BYTES + 1 };

/* A pin of the server's own keeps the step of a rollback (storage/runs/rollback.h). No client can
 * choose its name, because that begins with a dot. */
#define PIN_ROLLBACK ".rollback"

/* 1 found, 0 absent, -1. out->name is `name`, borrowed. */
int pin_row_find(struct db *db, int64_t run, struct span name, int64_t now_ms,
	struct pin_message *out, struct error *err);
int pin_row_put(struct db *db, int64_t run, const struct pin_message *pin, struct error *err);
int pin_row_remove(struct db *db, int64_t run, struct span name, struct error *err);
/* The pins that clients have named. */
int pin_row_count(struct db *db, int64_t run, int64_t now_ms, size_t *out_count, struct error *err);
/* The pins of a run that have not expired, in byte order of their names: db_step and pin_row_read
 * (the name is valid until the next step), then db_reset. */
struct db_statement *pin_row_scan(struct db *db, int64_t run, int64_t now_ms, struct error *err);
void pin_row_read(struct db_statement *scan, struct pin_message *out);
/* Any pin of the step: 1 with its name, NUL-terminated; 0 when there is none; -1. */
int pin_row_find_step(struct db *db, int64_t run, uint64_t step, int64_t now_ms,
	char out_name[PIN_NAME_BYTES], struct error *err);
int pin_row_has_expired(struct db *db, int64_t now_ms, bool *out_has, struct error *err);
/* Removes some of the pins that have expired; *out_more tells whether there may be more. */
int pin_row_sweep(struct db *db, int64_t now_ms, bool *out_more, struct error *err);
int pin_row_remove_of_run(struct db *db, int64_t run, bool *out_more, struct error *err);

#endif
