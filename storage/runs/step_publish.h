/* Publishing a step: the part that run_publish_call, the parts of many ranks (step_part.h), forks
 * and adopted steps share. Internal to storage. */
#ifndef STORAGE_RUNS_STEP_PUBLISH_H
#define STORAGE_RUNS_STEP_PUBLISH_H

#include "storage/run_tables/run_row.h"
#include "storage/runs/run.h"
#include "storage/runs/step_check.h"
#include "storage/versions/version.h"

struct step_publish {
	struct store *store;
	struct arena *arena; /* of all texts */
	struct run_ref run;
	struct step_message step;
	struct step_check check; /* step_publish_release frees what it holds */
	int64_t adoption;        /* id of the row of `adoptions` that is settled too; 0: none */
	bool is_of_parts;        /* the step is made of parts; the last one put has number `part` */
	uint64_t part;
	/* the result: */
	struct run_message message; /* the run after the publish */
	bool already;               /* the same step had been published before */
};
/* Inside a change: judges everything, in this order: epoch, a repeat, head, base, objects, tensors.
 * Then writes the step. */
int step_publish_apply(struct step_publish *publish, struct db *db, struct error *err);
/* After that change has committed: wakes the readers that wait for the step, and the step
 * worker. */
void step_publish_tell(const struct step_publish *publish);
void step_publish_release(struct step_publish *publish);

/* Publishes an adopted step and settles its adoption in the same change. Blocks: for background
 * work. */
int step_publish_adopted(struct store *store, const struct run_ref *run,
	const struct step_message *step, int64_t adoption, struct error *err);

/* The first checks of a publish, which each part has to pass too: the epoch; then the place behind
 * the head and on its base. */
int step_check_epoch(const struct run_row *run, const struct step_message *step, struct error *err);
int step_check_place(const struct run_row *run, const struct step_message *step, struct error *err);

/* The version that an object of a step means: the one with its id, or the current one. 1 found, 0
 * absent or a delete marker, -1. */
int step_find_object(struct db *db, int64_t bucket, const struct step_object *object,
	struct version *out_version, struct error *err);
/* As step_find_object, and the version must have the declared size and digest. Fails with no_key,
 * digest_mismatch, or busy when it has no digest yet. */
int step_resolve_object(struct db *db, int64_t bucket, const struct step_object *object,
	struct version *out_version, struct error *err);

#endif
