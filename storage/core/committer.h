/* Group commit. Every write to the catalog is a change: the one committer thread runs it under a
 * savepoint of its own, in queue order, its conditions judged there; a change that fails rolls back
 * alone; no outcome leaves before COMMIT returned (invariants 1, 2). */
#ifndef STORAGE_CORE_COMMITTER_H
#define STORAGE_CORE_COMMITTER_H

#include "base/metrics.h"
#include "storage/core/acknowledged.h"
#include "storage/db/db.h"
#include "storage/packs/pack_store.h"
#include "storage/packs/store_health.h"

struct committer;

struct change {
	/* On the committer before the shared pack is synced; NULL: nothing to place. -1: the change
	 * fails. */
	int (*place)(struct change *change, struct error *err);
	/* On the committer, inside the transaction. Touches about 1,000 rows at most. */
	int (*apply)(struct change *change, struct db *db, struct error *err);
	/* In place of the two above, NULL otherwise: on the committer between transactions, with
	 * none open, while nobody else changes anything. */
	int (*alone)(struct change *change, struct db *db, struct error *err);
	/* On the committer after COMMIT (or after the failure is settled): `failed` and `error`
	 * tell. Must be quick: store, wake. May free the change. */
	void (*done)(struct change *change);
	bool failed;
	/* With `failed`: COMMIT itself broke off, so that the log may hold it whole, and a crash
	 * before the next commit may bring it back. What it names must stay until the next start,
	 * which looks. */
	bool in_doubt;
	struct error error;
	struct change *next; /* the queue's */
};

struct committer_options {
	struct db *db;            /* for writing, taken over */
	struct pack_store *packs; /* NULL where no change places anything */
	struct metrics *metrics;  /* may be NULL */
	/* may be NULL: nobody is told of writes that are refused */
	struct store_health *health;
	struct acknowledged *acknowledged; /* noted after each COMMIT; may be NULL */
	struct store_identity store;       /* for that */
};
struct committer *committer_start(const struct committer_options *options);
void committer_stop(struct committer *committer); /* runs what is queued; then closes db */
/* Takes the change until done. After stop began: done comes at once with busy. */
void committer_submit(struct committer *committer, struct change *change);
/* For start-up, background work and the command line: submits and waits. `done` is not called and
 * may be NULL. */
int committer_run(struct committer *committer, struct change *change, struct error *err);

#endif
