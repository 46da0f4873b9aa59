/* The table `step_parts`: parts of steps that many ranks publish together. A part pins its objects
 * like a step whose number is the part's id with the other sign (storage/runs/step_pin.h). Internal
 * to storage. */
#ifndef STORAGE_RUNS_STEP_PART_ROW_H
#define STORAGE_RUNS_STEP_PART_ROW_H

#include "storage/db/db.h"
#include "wire/part_message.h"

enum step_part_state {
	STEP_PART_WAITING = 0,
	STEP_PART_PUBLISHED = 1, /* its objects are being released: the step has them */
	STEP_PART_DEAD = 2,      /* likewise; then it goes */
	STEP_PART_DONE = 3 /* published and released, kept for a while so that a repeat is known */
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

/* One that is not dead, without its document. 1, 0, -1. */
int step_part_row_find(struct db *db, int64_t run, uint64_t step, uint64_t part, uint64_t epoch,
	struct step_part_row *out, struct error *err);
/* The waiting parts of a step. */
struct step_part_count {
	uint64_t here;
	uint64_t parts; /* there shall be so many; 0: none is here */
	int64_t last;   /* the highest id of them */
};
int step_part_row_count(
	struct db *db, int64_t run, uint64_t step, struct step_part_count *out, struct error *err);
/* Sets row->id. */
int step_part_row_add(struct db *db, struct step_part_row *row, struct error *err);
/* Waiting parts in order: db_step, step_part_row_read (texts valid until the next step),
 * db_reset. */
struct db_statement *step_part_row_scan(
	struct db *db, int64_t run, uint64_t step, struct error *err);
void step_part_row_read(struct db_statement *scan, struct step_part_row *out);

/* All that wait of a run, or those of them with an id up to `last`, become published or dead. */
int step_part_row_settle(
	struct db *db, int64_t run, int64_t last, enum step_part_state state, struct error *err);
/* One slice of what is over: objects of published and dead ones, rows that nothing needs any
 * more. */
int step_part_row_sweep(struct db *db, int64_t now_ms, bool *out_more, struct error *err);
int step_part_row_has_work(struct db *db, int64_t now_ms, bool *out_has, struct error *err);
/* Whether the run has parts; all of them become dead. */
int step_part_row_end_run(struct db *db, int64_t run, bool *out_any, struct error *err);

#endif
