/* The table `adoptions`: publishes in foreign conventions, and which steps they became. Internal to
 * storage. */
#ifndef STORAGE_RUN_TABLES_ADOPT_ROW_H
#define STORAGE_RUN_TABLES_ADOPT_ROW_H

#include "storage/buckets/bucket_ref.h"
#include "storage/db/db.h"
#include "storage/run_tables/adopt_layout.h"

enum {
	ADOPT_FAILED_KEPT = 256,
	ADOPT_WAITING_MOST = 1000 /* hot-loads of a run; a name costs its sender nothing */
};

/* Numbers are stored in the catalog. */
enum adoption_state { ADOPTION_WAITS = 0, ADOPTION_PUBLISHED = 1, ADOPTION_FAILED = 2 };

struct adoption {
	int64_t id;
	int64_t run;
	enum adopt_convention convention;
	enum adoption_state state;
	struct span identity;
	/* the key, or (ending in '/') the beginning of the keys, of what it brought */
	struct span objects;
	bool has_base;
	struct span base;  /* the identity it builds on */
	uint64_t step;     /* once published */
	struct span error; /* once failed */
};

/* Notes a publish. One that failed waits again; one that is known otherwise stays as it is. */
int adopt_row_note(
	struct db *db, const struct adoption *adoption, int64_t now_ms, struct error *err);
/* Each: 1 found, 0 absent, -1; texts are copied into the arena. */
int adopt_row_find(
	struct db *db, int64_t id, struct arena *arena, struct adoption *out, struct error *err);
int adopt_row_find_identity(struct db *db, int64_t run, struct span identity, struct arena *arena,
	struct adoption *out, struct error *err);
int adopt_row_find_step(struct db *db, int64_t run, uint64_t step, struct arena *arena,
	struct adoption *out, struct error *err);
/* The newest that has not failed. */
int adopt_row_find_newest(
	struct db *db, int64_t run, struct arena *arena, struct adoption *out, struct error *err);
/* The newest of all. */
int adopt_row_find_last(
	struct db *db, int64_t run, struct arena *arena, struct adoption *out, struct error *err);
/* The first above `after` that is next of its run: those of a run wait for the ones that were noted
 * before them. */
int adopt_row_find_waiting(
	struct db *db, int64_t after, int64_t *out_id, int64_t *out_run, struct error *err);

/* How many wait. */
int adopt_row_count_waiting(struct db *db, int64_t run, int64_t *out, struct error *err);

/* Where the run is, with the bucket's id: no_run when it has ended. */
int adopt_row_find_bucket(
	struct db *db, int64_t run, struct arena *arena, struct bucket_ref *out, struct error *err);

int adopt_row_set_published(struct db *db, int64_t id, uint64_t step, struct error *err);
/* Those of the run that wait behind it fail too when they name a base: it is not there. Of the
 * failed ones, the newest ADOPT_FAILED_KEPT stay. */
int adopt_row_set_failed(struct db *db, int64_t id, struct span error, struct error *err);
/* A pointer that was followed. */
int adopt_row_remove(struct db *db, int64_t id, struct error *err);
/* The step was collected. */
int adopt_row_forget_step(struct db *db, int64_t run, uint64_t step, struct error *err);
/* Some of them at a time: *out_more when there may be more. */
int adopt_row_remove_of_run(struct db *db, int64_t run, bool *out_more, struct error *err);

#endif
