/* Publishing a step: what run_publish_call, the parts of many ranks (step_part.h), forks and
 * foreign publishes have in common. Internal to storage. */
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
	int64_t adoption;        /* row of `adoptions` that is settled along; 0: none */
	bool is_of_parts;        /* made of parts, the last of which was number `part` */
	uint64_t part;
	/* what became of it: */
	struct run_message message; /* the run as it is then */
	bool already;               /* the same step was there */
};
/* Everything is judged here, in this order: epoch, a repeat, head, base, objects, tensors. Inside a
 * change. */
int step_publish_apply(struct step_publish *publish, struct db *db, struct error *err);
/* Once that change is through: wakes those that wait for the step. */
void step_publish_tell(const struct step_publish *publish);
void step_publish_release(struct step_publish *publish);

/* Publishes what a foreign publish has become, and settles it in the same change. Blocking: for
 * background work. */
int step_publish_adopted(struct store *store, const struct run_ref *run,
	const struct step_message *step, int64_t adoption, struct error *err);

/* The first of its judgements, which parts are put to one by one: the epoch; the place behind the
 * head and on its base. */
int step_check_epoch(const struct run_row *run, const struct step_message *step, struct error *err);
int step_check_place(const struct run_row *run, const struct step_message *step, struct error *err);

/* 1 found (and no delete marker), 0 absent, -1: the version a step's object means, by id or the
 * current one. */
int step_find_object(struct db *db, int64_t bucket, const struct step_object *object,
	struct version *out_version, struct error *err);
/* The version a step's object means: the named one or the current one, with the declared size and
 * digest; else no_key, digest_mismatch, busy when it has no digest yet. */
int step_resolve_object(struct db *db, int64_t bucket, const struct step_object *object,
	struct version *out_version, struct error *err);

#endif
