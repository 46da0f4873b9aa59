/* A publisher's memory of one run between two publishes, in a folder of its own:
 *
 *   state.json        endpoint, run, epoch; the committed step, the pending step, the base (the
 *                     newest step with a copy), and the last step with an anchor
 *   step-NNNNNN/      for the pending step and for the steps from the base to the committed one:
 *       checkpoint/   base and pending step: a copy of the checkpoint
 *       delta/        pending step and those behind the base: the delta against the step before
 *       proven        pending step, empty: the delta leads to the step's digest
 *       sent          pending step: request targets whose upload is done, one a line
 *       source        committed step: where the trainer's own checkpoint lies (publish_source.h)
 *   new/              a copy that is being made, of the next step or of the committed one
 *   new-delta/delta   a delta that is being made, of a step that is not pending yet
 *
 * The next delta is made against the committed step: against its copy, or against the base with the
 * deltas behind it. The base is never newer than the committed step.
 *
 * state.json is replaced whole, and a step's folder is complete before state.json names it. So a
 * kill -9 at any moment leaves either the state before or the state after; opening the folder
 * removes everything that the state does not name. The committed step advances only after the
 * server has said that the next one is published.
 *
 * Copies of checkpoints are not synced: that would cost more than the publish. So after a power cut
 * the copy of the committed step must prove its digest before a delta is made against it
 * (wrong_base: it is fetched again), and a copy that an earlier call left of the pending step is
 * never used. `sent` and `proven` may be lost: then objects are sent again, and the delta is made
 * again. */
#ifndef CLIENT_PUBLISH_PUBLISH_STATE_H
#define CLIENT_PUBLISH_PUBLISH_STATE_H

#include "base/digest/xxh3.h"
#include "base/file.h"

struct publish_mark {
	uint64_t step;
	struct digest128 digest;  /* of the checkpoint's tensors */
	struct digest128 content; /* of all its files */
};

struct publish_state {
	const struct file_ops *files;
	char *folder;
	int lock_fd; /* -1: the caller's lock keeps others out */
	char *endpoint;
	char *run;
	bool has_epoch;
	uint64_t epoch;
	bool has_committed;
	struct publish_mark committed;
	/* The base has a copy, and there are deltas from it to the committed step. It is the
	 * committed step or an earlier one. */
	bool has_base;
	struct publish_mark base;
	bool has_pending;
	struct publish_mark pending;
	bool has_anchor;
	uint64_t anchor_step; /* the last step that is known to have an anchor from a publisher */
};

/* The default folder: $XDG_STATE_HOME (or ~/.local/state)/deltabucket/<endpoint>/<bucket>/<run>,
 * with the endpoint percent-encoded. NULL with the error when there is no home folder. Heap, the
 * caller's. */
char *publish_state_default_folder(const char *endpoint, const char *run, struct error *err);

struct publish_state_params { /* borrowed during publish_state_open; `files` until close */
	const struct file_ops *files;
	const char *folder;
	const char *endpoint;
	const char *run;
	/* for callers that take the run over: a state of ours that is damaged, or that lacks its
	 * state.json, is replaced by an empty one */
	bool may_replace;
	const int *held_lock; /* from publish_state_lock; NULL: the folder is locked here */
};

/* Makes the folder if needed, and keeps other publishers out of it for longer than one open state
 * does. `held` is an earlier lock of this process, -1: none. Gives `held` when that still locks the
 * folder, otherwise a new lock; -1 with busy when another publisher works there. Each lock is
 * left once, with folder_lock_leave. */
int publish_state_lock(
	const struct file_ops *files, const char *folder, int held, struct error *err);

/* Makes the folder if needed, locks it, reads it and cleans it. busy when another publisher has it
 * open; exists when it belongs to another run or endpoint, or holds other files; corrupt when
 * state.json is unreadable. On failure the state is closed. */
int publish_state_open(
	struct publish_state *state, const struct publish_state_params *params, struct error *err);
void publish_state_close(struct publish_state *state); /* a zeroed one is fine */

/* "<folder>/new": where a copy of the next checkpoint is made; heap, the caller's. */
char *publish_state_new_path(const struct publish_state *state);
/* Makes `mark` the pending step and moves the copy at publish_state_new_path, if there is one, into
 * its folder. If an earlier call made the same step pending, its delta (if proven) and its uploads
 * still count. Its copy does not: a power cut may have taken bytes of it. Any other pending step is
 * dropped. Saves. */
int publish_state_set_pending(
	struct publish_state *state, const struct publish_mark *mark, struct error *err);

/* Writes state.json; then removes step folders that it does not name. */
int publish_state_save(struct publish_state *state, struct error *err);
/* Commits the pending step, which must exist and be published. A step with a copy becomes the base;
 * a step with a delta keeps the base; with neither there is no base. Saves. */
int publish_state_commit(struct publish_state *state, bool with_anchor, struct error *err);
/* Makes the committed step, which must exist, the base: the copy at publish_state_new_path is moved
 * into its folder. Saves. */
int publish_state_set_base(struct publish_state *state, struct error *err);
/* For writers that change the base's copy into the committed step's: forgets the base, saves, and
 * then moves its copy to publish_state_new_path. A kill from here on leaves no base, until
 * publish_state_set_base. Without a base there is nothing at that path afterwards. */
int publish_state_take_base(struct publish_state *state, struct error *err);
/* Makes `mark`, whose folder holds a copy, the committed step and the base. Saves. */
int publish_state_adopt(
	struct publish_state *state, const struct publish_mark *mark, struct error *err);
/* Forgets the committed step and the base. Does not save. */
void publish_state_forget(struct publish_state *state);
/* Forgets the pending step and its folder. Saves. */
int publish_state_drop_pending(struct publish_state *state, struct error *err);

/* Whether the pending step's delta is proven to be what its digests say. A delta that was made
 * while the checkpoint changed looks the same. So a delta is unproven from before it is made until
 * the checkpoint has been found unchanged after it. A step must be pending. */
bool publish_state_is_proven(const struct publish_state *state);
int publish_state_set_proven(const struct publish_state *state, bool is_proven, struct error *err);
/* "<folder>/new-delta/delta", where the delta of a step is made that cannot be pending yet, because
 * its digests come from the pass that makes the delta; heap, the caller's. */
char *publish_state_new_delta_path(const struct publish_state *state);
/* Makes room for a delta at that path: what an earlier call left there is removed. */
int publish_state_clear_new_delta(const struct publish_state *state, struct error *err);
/* Makes the delta at that path, which must be proven, the pending step's. */
int publish_state_take_delta(const struct publish_state *state, struct error *err);

/* "<folder>/step-NNNNNN/<name>"; heap, the caller's. */
char *publish_state_path(const struct publish_state *state, uint64_t step, const char *name);
/* "<folder>/<name>". */
char *publish_state_work_path(const struct publish_state *state, const char *name);

/* Notes that an object of the pending step, which must exist, has been uploaded. */
int publish_state_add_sent(
	const struct publish_state *state, const char *target, struct error *err);
/* Reads the text of `sent`, which is empty when there is none. The caller releases *out, also after
 * a failure. */
int publish_state_read_sent(
	const struct publish_state *state, struct buffer *out, struct error *err);
int publish_state_clear_sent(const struct publish_state *state, struct error *err);

#endif
