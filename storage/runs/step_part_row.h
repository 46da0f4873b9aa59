/* The table `step_parts`: parts of steps that many ranks publish together. A part keeps its objects
 * in `step_objects` (storage/runs/step_pin.h), with the negative of its id as the id of the step.
 * Internal to storage. */
#ifndef STORAGE_RUNS_STEP_PART_ROW_H
#define STORAGE_RUNS_STEP_PART_ROW_H

#include "storage/db/db.h"
#include "wire/part_message.h"

enum step_part_state {
	STEP_PART_WAITING = 0,
	STEP_PART_PUBLISHED = 1, /* its objects are being released, because the step has them */
	STEP_PART_DEAD = 2,      /* its objects are being released; then the row is removed */
	/* published and released; the row stays for a while, so that a repeat is recognised */
	STEP_PART_DONE = 3
};
enum { STEP_PART_LIFE_MS = 60 * 60 * 1000 };

struct step_part_row {
	int64_t id;
	int64_t run;
	uint64_t step;
	uint64_t part;
	uint64_t parts;
	uint64_t epoch;
	enum step_part_state state;
	struct digest128 content; /* part_message_content_digest */
	struct span document;     /* part_message_print */
	int64_t created_ms;
};

struct step_part_key {
	int64_t run;
	uint64_t step;
	uint64_t part;
	uint64_t epoch;
};
/* Finds a part that is not dead, without its document. 1, 0, -1. */
int step_part_row_find(struct db *db, const struct step_part_key *key, struct step_part_row *out,
	struct error *err);
/* The waiting parts of a step. */
struct step_part_count {
	uint64_t here;
	uint64_t parts; /* the number that the ranks announced; 0: none is here */
	int64_t last;   /* their highest id */
};
int step_part_row_count(
	struct db *db, int64_t run, uint64_t step, struct step_part_count *out, struct error *err);
/* Sets row->id. */
int step_part_row_add(struct db *db, struct step_part_row *row, struct error *err);
/* The waiting parts of a step in the order of their numbers: db_step and step_part_row_read (texts
 * are valid until the next step), then db_reset. */
struct db_statement *step_part_row_scan(
	struct db *db, int64_t run, uint64_t step, struct error *err);
void step_part_row_read(struct db_statement *scan, struct step_part_row *out);

/* The waiting parts of a run with an id up to `last` (INT64_MAX: all) become published or dead. */
int step_part_row_settle(
	struct db *db, int64_t run, int64_t last, enum step_part_state state, struct error *err);
/* One slice of cleaning up: releases objects of published and dead parts, and removes rows that
 * nothing needs any more. *out_more tells whether there may be more. */
int step_part_row_sweep(struct db *db, int64_t now_ms, bool *out_more, struct error *err);
int step_part_row_has_work(struct db *db, int64_t now_ms, bool *out_has, struct error *err);
/* All parts of the run become dead; *out_any tells whether there are any. */
int step_part_row_end_run(struct db *db, int64_t run, bool *out_any, struct error *err);

#endif
