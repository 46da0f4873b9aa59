/* A change of a run on its way through the committer, and the pieces of publishing: shared by the
 * files behind run.h and by the jobs that publish or fork (step_jobs). Internal to storage. */
#ifndef STORAGE_RUNS_RUN_CHANGE_H
#define STORAGE_RUNS_RUN_CHANGE_H

#include "base/thread/helpers.h"
#include "storage/core/committer.h"
#include "storage/run_tables/replica_table.h"
#include "storage/run_tables/run_row.h"
#include "storage/run_tables/step_row.h"
#include "storage/runs/run.h"
#include "storage/runs/step_part_set.h"
#include "storage/versions/version.h"
#include "weights/model/schema.h"
#include "wire/pin_message.h"

/* What a helper found out about a step's tensors before its change queued. */
struct step_check {
	int64_t run; /* the run it was held against; 0: none was there */
	/* the run's, or the anchor's when the run has none; NULL: neither */
	struct schema *schema;
	struct digest128 schema_digest; /* of `schema` */
	/* `error` says what is wrong with the anchor or the digests; judged after all else */
	bool failed;
	struct error error;
};
/* Reads the headers of the anchor's shards and judges schema and tensor digests. With `parts`, the
 * digests are taken from there, and the step's own is computed. Blocking: on a helper. Faults go
 * into `out`. */
void step_check_run(struct store *store, struct span bucket, struct span run,
	struct step_message *step, struct step_part_set *parts, struct step_check *out);
void step_check_release(struct step_check *check);

struct hot_load_params;

/* A part on its way, and what becomes of it (storage/runs/step_part.c). */
struct part_work {
	struct part_message message;
	struct part_answer answer;
	struct step_part_set *set; /* all parts, once they are there */
	int64_t last_id;           /* the last of them */
	struct error fault;        /* why they make no whole */
};

struct run_change {
	struct change change; /* first */
	struct store *store;
	struct arena *arena;
	struct span bucket;
	struct span run;
	struct run_open_params open;
	struct span settings;                   /* JSON, what to change */
	const struct hot_load_params *hot_load; /* in the arena */
	int64_t adoption; /* row of `adoptions` that publishing settles; 0: none */
	uint64_t collect_step;
	struct span name; /* of a replica, a pin, or the run that is forked */
	uint64_t fork_step;
	struct run_anchor fork_anchor;
	int64_t run_id; /* of saving a replica and of ending a run */
	struct replica_saving replica_saving;
	struct pin_message pin;   /* of putting a pin */
	struct step_message step; /* of publish; in the arena */
	/* of a part, and of the publish that its last one makes; in the arena */
	struct part_work *part;
	struct step_check check;
	struct helper_job job;
	struct run_message message;
	bool already;
	void (*done)(void *owner);
	void *owner;
};
struct run_change *run_change_new(struct store *store, struct span bucket, struct span run,
	void (*done)(void *owner), void *owner);
/* Queues it with this apply; when the texts did not fit, it fails in its turn. */
void run_change_submit(struct run_change *change,
	int (*apply)(struct change *change, struct db *db, struct error *err));

/* Publishes what a foreign publish has become, and settles it in the same change. Blocking: for
 * background work. */
int run_publish_adopted(struct store *store, struct span bucket, struct span run,
	const struct step_message *step, int64_t adoption, struct error *err);
/* Pieces of publishing that parts share: the epoch; the place behind the head and on its base; the
 * change itself; what follows its commit. */
int step_check_epoch(const struct run_row *run, const struct step_message *step, struct error *err);
int step_check_place(const struct run_row *run, const struct step_message *step, struct error *err);
int step_publish_apply(struct change *change, struct db *db, struct error *err);
void step_published(struct run_change *change);

/* Opens a run that there is not: sets *row, whose bucket is given. */
int run_open_new(struct run_change *change, struct db *db, struct run_row *row, struct error *err);

/* A deep copy; false when the arena ran out. */
bool step_copy(const struct step_message *step, struct arena *arena, struct step_message *out);
/* The manifest as published, with URLs and times. */
int step_read(struct db *db, const struct step_row *row, bool with_tensors, struct arena *arena,
	struct step_message *out, struct error *err);
/* 1 found (and no delete marker), 0 absent, -1: the version a step's object means, by id or the
 * current one. */
int step_find_object(struct db *db, int64_t bucket, const struct step_object *object,
	struct version *out_version, struct error *err);
/* Reads objects of the step that have no digest and stores theirs. Blocking: on a helper. */
int step_give_digests(
	struct store *store, int64_t bucket, const struct step_message *step, struct error *err);
/* The version a step's object means: the named one or the current one, with the declared size and
 * digest; else no_key, digest_mismatch, busy when it has no digest yet. */
int step_resolve_object(struct db *db, int64_t bucket, const struct step_object *object,
	struct version *out_version, struct error *err);
/* Removes a step within a change and counts it out of the run's row (not written here). */
int step_collect_row(
	struct db *db, struct run_row *run, const struct step_row *row, struct error *err);
/* Retention: at most STEP_RETAIN_AT_ONCE steps at a time; the run's row is not written. */
enum { STEP_RETAIN_AT_ONCE = 64 };
int step_retain(struct store *store, struct db *db, struct run_row *run, struct error *err);
/* collected, with the nearest anchor above (UINT64_MAX: none). */
int step_is_collected(
	struct db *db, int64_t run, uint64_t step, uint64_t *out_anchor, struct error *err);
int step_no_step(uint64_t step, struct error *err);
/* Whether the next step should bring an anchor: nothing good leads to the head, or the deltas since
 * the last anchor, published or made, are too many or too large. */
int step_anchor_due(struct db *db, const struct run_row *run, bool *out_due, struct error *err);

#endif
