/* The table `pins`. One that has expired counts as absent before it is swept. Times on the wall
 * clock. Internal to storage. */
#ifndef STORAGE_RUN_TABLES_PIN_ROW_H
#define STORAGE_RUN_TABLES_PIN_ROW_H

#include "storage/db/db.h"
#include "wire/pin_message.h"

/* 1 found, 0 absent, -1. The name's text is borrowed from `name`. */
int pin_row_find(struct db *db, int64_t run, struct span name, int64_t now_ms,
	struct pin_message *out, struct error *err);
int pin_row_put(struct db *db, int64_t run, const struct pin_message *pin, struct error *err);
int pin_row_remove(struct db *db, int64_t run, struct span name, struct error *err);
int pin_row_count(struct db *db, int64_t run, int64_t now_ms, size_t *out_count, struct error *err);
/* All of a run that have not expired, in byte order of their names: db_step, pin_row_read (the name
 * valid until the next step), db_reset. */
struct db_statement *pin_row_scan(struct db *db, int64_t run, int64_t now_ms, struct error *err);
void pin_row_read(struct db_statement *scan, struct pin_message *out);
/* A pin of the step, any: 1 found, 0, -1. The name is copied. */
int pin_row_find_step(struct db *db, int64_t run, uint64_t step, int64_t now_ms,
	struct arena *arena, struct span *out_name, struct error *err);
int pin_row_has_expired(struct db *db, int64_t now_ms, bool *out_has, struct error *err);
/* Removes those that have expired, some at a time. */
int pin_row_sweep(struct db *db, int64_t now_ms, bool *out_more, struct error *err);
int pin_row_remove_of_run(struct db *db, int64_t run, bool *out_more, struct error *err);

#endif
