/* The table `adoptions`: publishes that trainers made in conventions of their own, and the steps
 * that they became. Internal to storage. */
#ifndef STORAGE_RUN_TABLES_ADOPT_ROW_H
#define STORAGE_RUN_TABLES_ADOPT_ROW_H

#include "storage/buckets/bucket_ref.h"
#include "storage/db/db.h"
#include "storage/run_tables/adopt_layout.h"

enum {
	ADOPT_FAILED_KEPT = 256, /* failed publishes that stay known, per run */
	/* hot-loads of a run that wait; bounded, because naming one costs its sender nothing */
	ADOPT_WAITING_MOST = 1000
};

/* Numbers are stored in the catalog. */
enum adoption_state { ADOPTION_WAITS = 0, ADOPTION_PUBLISHED = 1, ADOPTION_FAILED = 2 };

struct adoption {
	int64_t id;
	int64_t run;
	enum adopt_convention convention;
	enum adoption_state state;
	struct span identity;
	/* the key of its object or, ending in '/', the beginning of the keys of its objects */
	struct span objects;
	bool has_base;
	struct span base;  /* the identity that it builds on */
	uint64_t step;     /* set when it is published */
	struct span error; /* why it failed; set when it has failed */
	int64_t created_ms; /* when it was last noted */
};

/* Notes a publish. A failed one waits again; any other known one stays as it is. */
int adopt_row_note(
	struct db *db, const struct adoption *adoption, int64_t now_ms, struct error *err);
/* Each returns 1 when found, 0 when absent, -1 on error. Texts are copied into the arena. */
int adopt_row_find(
	struct db *db, int64_t id, struct arena *arena, struct adoption *out, struct error *err);
int adopt_row_find_identity(struct db *db, int64_t run, struct span identity, struct arena *arena,
	struct adoption *out, struct error *err);
int adopt_row_find_step(struct db *db, int64_t run, uint64_t step, struct arena *arena,
	struct adoption *out, struct error *err);
/* The newest one that has not failed. */
int adopt_row_find_newest(
	struct db *db, int64_t run, struct arena *arena, struct adoption *out, struct error *err);
/* The newest one, failed or not. */
int adopt_row_find_last(
	struct db *db, int64_t run, struct arena *arena, struct adoption *out, struct error *err);
/* The last one that failed, if it was noted behind the newest step that was adopted. Of those that
 * failed together it is the one that the others build on. */
int adopt_row_find_failure(
	struct db *db, int64_t run, struct arena *arena, struct adoption *out, struct error *err);
/* The first one with an id above `after` whose turn it is: the publishes of a run wait for those
 * that were noted before. 1, 0, -1. */
int adopt_row_find_waiting(
	struct db *db, int64_t after, int64_t *out_id, int64_t *out_run, struct error *err);

/* How many publishes of the run wait. */
int adopt_row_count_waiting(struct db *db, int64_t run, int64_t *out, struct error *err);

/* The bucket of the run, with its id. no_run when the run has ended. */
int adopt_row_find_bucket(
	struct db *db, int64_t run, struct arena *arena, struct bucket_ref *out, struct error *err);

int adopt_row_set_published(struct db *db, int64_t id, uint64_t step, struct error *err);
/* Later publishes of the run that wait and name a base fail too, because their base will be
 * missing. Only the newest ADOPT_FAILED_KEPT failed ones of the run stay. */
int adopt_row_set_failed(struct db *db, int64_t id, struct span error, struct error *err);
/* For a pointer that was followed. */
int adopt_row_remove(struct db *db, int64_t id, struct error *err);
/* For a step that was collected. */
int adopt_row_forget_step(struct db *db, int64_t run, uint64_t step, struct error *err);
/* Removes some rows; *out_more tells whether there may be more. */
int adopt_row_remove_of_run(struct db *db, int64_t run, bool *out_more, struct error *err);

#endif
