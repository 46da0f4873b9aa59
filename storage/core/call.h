/* One piece of work that storage does for somebody that waits for it. Each stage of a call runs on
 * the thread that it needs: what blocks on a helper, what changes the catalog on the committer.
 * All calls share this frame; what a call does stands in its table, where the stages are read in
 * the order in which they run:
 *
 *     static const struct call_kind kind = {
 *             .stages = {{.help = judge}, {.apply = complete, .applied = judge_again_if_stale}},
 *             .settle = wake_workers,
 *             .release = release,
 *     };
 *
 *     call_new --> call_start --> stage by stage --> settle --> wake(owner) --> call_outcome --> call_free
 *
 * A call is a struct whose first member is a struct call. It belongs to its maker until call_start,
 * to the thread of the stage under way until the wake, and to its maker again from then on: no
 * thread holds a lock for it. A call that was started is freed only after its wake. */
#ifndef STORAGE_CORE_CALL_H
#define STORAGE_CORE_CALL_H

#include "base/arena.h"
#include "storage/core/committer.h"
#include "storage/core/store.h"

struct call;

/* What follows a stage. */
enum call_next {
	CALL_FAILS = -1, /* the call ends, with the error that the stage set */
	CALL_NEXT = 0,   /* the stage behind it; the call ends behind the last one */
	CALL_AGAIN,      /* the same stage, behind what waits for its thread by now */
	CALL_FIRST,      /* all stages again */
	CALL_ENDS        /* well, without the stages that are left */
};

/* Of the three that run it, one is set. */
struct call_stage {
	/* On a helper; may block. */
	enum call_next (*help)(struct call *call, struct error *err);
	/* On the committer, inside its transaction (committer.h); 0, or -1 and the change fails.
	 * `place` may stand beside it. */
	int (*apply)(struct call *call, struct db *db, struct error *err);
	/* On the thread that the stage before ended on: starts what ends with call_resume, from
	 * whatever thread. */
	void (*begin)(struct call *call);

	int (*place)(struct call *call, struct error *err);
	/* On the committer, after COMMIT or after this stage's change failed: what follows.
	 * call->failed and call->change.in_doubt tell which. An answer other than CALL_FAILS
	 * withdraws a failure. NULL: the next stage, or the end after a failure. */
	enum call_next (*applied)(struct call *call);
};

enum { CALL_STAGES_MAX = 4 };

struct call_kind {
	struct call_stage stages[CALL_STAGES_MAX]; /* up to the first empty one */
	/* The message of a call whose texts do not fit its arena, which is refused as too_large;
	 * NULL: a general one. */
	const char *too_large;
	/* At the end of a call, well or not, on the thread of its last stage, before the owner is
	 * woken; must be quick. NULL: nothing. */
	void (*settle)(struct call *call);
	/* Frees what the call holds outside its arena. NULL: nothing. */
	void (*release)(struct call *call);
};

struct call {
	const struct call_kind *kind;
	struct store *store;
	struct arena *arena; /* the texts of the call and of its result */
	bool failed;
	struct error error; /* with `failed` */
	/* the frame's own: */
	unsigned stage;
	struct change change;
	struct helper_job job;
	struct helper_lane own_lane;
	struct helper_lane *lane; /* of its helper stages; its maker may name another */
	void (*wake)(void *owner);
	void *owner;
};

/* A zeroed struct of `bytes`, whose first member is a struct call, with an arena of at most
 * `arena_bytes`. */
void *call_new(size_t bytes, const struct call_kind *kind, struct store *store, size_t arena_bytes);
/* Runs it. wake(owner) comes once, from whatever thread, possibly before this returns; it may free
 * the call. */
void call_start(struct call *call, void (*wake)(void *owner), void *owner);
/* Runs it and waits for its end, for threads that may block. 0, or -1 with the call's failure. */
int call_run(struct call *call, struct error *err);
/* What `begin` started has ended; `err`: it failed so; NULL: well. The call may be gone when this
 * returns. */
void call_resume(struct call *call, const struct error *err);
/* After the wake: 0, or -1 with the call's failure. */
int call_outcome(const struct call *call, struct error *err);
/* Frees it with its arena. NULL is fine. */
void call_free(struct call *call);

#endif
