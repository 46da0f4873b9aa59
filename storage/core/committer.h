/* Group commit. Every write to the catalog is a change. The one committer thread runs changes in
 * the order of the queue, each under a savepoint of its own, and judges their conditions there. A
 * change that fails rolls back alone. No outcome leaves before COMMIT has returned (invariants 1,
 * 2). */
#ifndef STORAGE_CORE_COMMITTER_H
#define STORAGE_CORE_COMMITTER_H

#include "base/metrics.h"
#include "storage/core/acknowledged.h"
#include "storage/db/db.h"
#include "storage/journal/journal.h"
#include "storage/packs/pack_store.h"
#include "storage/packs/store_health.h"

struct committer;

struct change {
	/* Runs on the committer before the shared pack is synced. Returns 0, or -1 to fail the
	 * change. NULL: nothing to place. */
	int (*place)(struct change *change, struct error *err);
	/* Runs on the committer, inside the transaction. Touches about 1,000 rows at most. */
	int (*apply)(struct change *change, struct db *db, struct error *err);
	/* In place of the two above; NULL otherwise. Runs on the committer outside of transactions,
	 * while no other change runs. */
	int (*alone)(struct change *change, struct db *db, struct error *err);
	/* Runs on the committer after COMMIT, or after the failure is settled: `failed` and `error`
	 * have the outcome. Must be quick: store, wake. May free the change. */
	void (*done)(struct change *change);
	bool failed;
	/* With `failed`: COMMIT itself broke off. The log may have the whole change, and a crash
	 * before the next commit may bring it back. All that it names must stay until the next
	 * start, which finds out. */
	bool in_doubt;
	struct error error;
	struct change *next; /* only the queue uses it */
};

struct committer_options {
	struct db *db;            /* for writing; taken over */
	struct pack_store *packs; /* NULL where no change places anything */
	struct metrics *metrics;  /* may be NULL */
	/* learns of each write that failed or succeeded; may be NULL */
	struct store_health *health;
	struct acknowledged *acknowledged; /* noted after each COMMIT; may be NULL */
	struct store_identity store;       /* for `acknowledged` */
	struct journal *journal;           /* synced before the log restarts; may be NULL */
};
struct committer *committer_start(const struct committer_options *options);
void committer_stop(struct committer *committer); /* runs the queued changes, then closes db */
/* Owns the change until `done`. Once a stop has begun, `done` is called at once, with busy. */
void committer_submit(struct committer *committer, struct change *change);
/* Submits the change and waits for it, for background work and the command line. Never on the
 * committer's own thread. `done` is not called and may be NULL. */
int committer_run(struct committer *committer, struct change *change, struct error *err);

#endif
