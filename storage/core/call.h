/* A piece of work that storage does while its caller waits. Each stage of a call runs on the thread
 * that it needs: stages that block run on a helper, stages that change the catalog run on the
 * committer. All calls share this frame. A table says what a call does, with the stages in the
 * order in which they run:
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
 * then to the thread of the running stage, and to its maker again after the wake; so it needs no
 * lock. A call that was started is freed only after its wake. */
#ifndef STORAGE_CORE_CALL_H
#define STORAGE_CORE_CALL_H

#include "base/arena.h"
#include "storage/core/committer.h"
#include "storage/core/store.h"

struct call;

/* The answer of a stage: how the call goes on. */
enum call_next {
	CALL_FAILS = -1, /* the call ends with the error that the stage set */
	CALL_NEXT = 0,   /* the next stage, or the end after the last one */
	CALL_AGAIN,      /* the same stage, queued behind the work that waits for its thread */
	CALL_FIRST,      /* all stages again */
	CALL_ENDS        /* success, without the remaining stages */
};

/* Exactly one of help, apply and begin is set. */
struct call_stage {
	/* Runs on a helper. May block. */
	enum call_next (*help)(struct call *call, struct error *err);
	/* Runs on the committer, inside its transaction (committer.h). Returns 0, or -1 to fail the
	 * change. */
	int (*apply)(struct call *call, struct db *db, struct error *err);
	/* Runs on the thread on which the stage before ended. Starts work that ends with
	 * call_resume, on any thread. */
	void (*begin)(struct call *call);

	/* Only beside `apply`, and before it: change.place. NULL: nothing to place. */
	int (*place)(struct call *call, struct error *err);
	/* Only beside `apply`. Runs on the committer, after COMMIT or after the change of this
	 * stage failed: call->failed and call->change.in_doubt tell which. An answer other than
	 * CALL_FAILS withdraws a failure. NULL: CALL_NEXT, or CALL_FAILS after a failure. */
	enum call_next (*applied)(struct call *call);
};

enum { CALL_STAGES_MAX = 4 };

struct call_kind {
	struct call_stage stages[CALL_STAGES_MAX]; /* up to the first empty one */
	/* The message for a call whose texts do not fit its arena; it is refused as too_large.
	 * NULL: a general one. */
	const char *too_large;
	/* Runs once for each call, at its end, when its outcome is certain: on the thread of its
	 * last stage, before the owner is woken. It runs also when no stage did, because the texts
	 * did not fit. Must be quick. May be NULL. */
	void (*settle)(struct call *call);
	/* Frees what the call owns outside its arena. May be NULL. */
	void (*release)(struct call *call);
};

struct call {
	const struct call_kind *kind;
	struct store *store;
	struct arena *arena; /* the texts of the call and of its result */
	bool failed;
	struct error error; /* with `failed` */
	/* only the frame uses these: */
	unsigned stage;
	struct change change;
	struct helper_job job;
	struct helper_lane own_lane;
	struct helper_lane *lane; /* of its helper stages; the maker may set another one */
	void (*wake)(void *owner);
	void *owner;
};

/* Makes a zeroed struct of `bytes`, whose first member is a struct call, with an arena of at most
 * `arena_bytes`. */
void *call_new(size_t bytes, const struct call_kind *kind, struct store *store, size_t arena_bytes);
/* Starts it, once. wake(owner) is called once, from any thread, possibly before this returns. It
 * may free the call. */
void call_start(struct call *call, void (*wake)(void *owner), void *owner);
/* Starts it and waits for its end, for threads that may block. Returns call_outcome. */
int call_run(struct call *call, struct error *err);
/* Ends a `begin` stage, with success when `err` is NULL. The call may be freed when this
 * returns. */
void call_resume(struct call *call, const struct error *err);
/* After the wake: returns 0, or -1 with the call's failure. */
int call_outcome(const struct call *call, struct error *err);
/* Frees it with its arena. NULL is fine. */
void call_free(struct call *call);

#endif
