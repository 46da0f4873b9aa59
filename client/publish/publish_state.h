/* What a publisher remembers of one run between two publishes, in a folder of its own:
 *
 *   state.json        endpoint, run, epoch, the committed step, the pending one, the step with the copy, the last one with an
 *                     anchor
 *   step-NNNNNN/      of the pending step, and of the committed one with those that it is made from:
 *       checkpoint/   a copy of the checkpoint: of the base, the newest step that has one
 *       delta/        of those behind the base: the delta against the step before
 *       proven        pending only, empty: the delta leads to the step's digest
 *       sent          pending only: request targets whose upload is done, a line each
 *       source        committed only: where the trainer's own checkpoint lies (client/publish/publish_source.h)
 *
 * The baseline of the next delta is the committed step: its copy, or the base with the deltas
 * behind it.
 *
 * state.json is replaced whole, and a step's folder is complete before state.json names it, so kill
 * -9 anywhere leaves either the state before or the state after; opening removes what no state
 * names. The baseline advances only when the server has said that the step is published.
 *
 * The copies of checkpoints are not synced: that would cost more than the publish. So what a power
 * cut has left of the committed one is held against its digest before a delta is made of it
 * (wrong_base: it is fetched again), and what it has left of the pending one is never used. `sent`
 * and `proven` may be lost: then objects are sent again, and the delta is made again. */
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
	int lock_fd;
	char *endpoint;
	char *run;
	bool has_epoch;
	uint64_t epoch;
	bool has_committed;
	struct publish_mark committed;
	bool has_base;            /* a step with a copy, and deltas from it to the committed one: */
	struct publish_mark base; /* the committed step itself, or one before */
	bool has_pending;
	struct publish_mark pending;
	/* the last step that we know to have an anchor of a publisher's: */
	bool has_anchor;
	uint64_t anchor_step;
};

/* The default folder: $XDG_STATE_HOME (or ~/.local/state)/deltabucket/<endpoint>/<bucket>/<run>,
 * the endpoint percent-encoded. NULL with the error when there is no home folder. Heap, the
 * caller's. */
char *publish_state_default_folder(const char *endpoint, const char *run, struct error *err);

/* Makes the folder where needed, locks it, reads it, cleans it. busy when another publisher holds
 * it; exists when it belongs to another run or endpoint, or holds other files; corrupt when
 * state.json is unreadable. `is_anew`, for those that take the run over: what is ours and damaged,
 * or lacks its state.json, is begun anew. */
int publish_state_open(struct publish_state *state, const struct file_ops *files,
	const char *folder, const char *endpoint, const char *run, bool is_anew, struct error *err);
void publish_state_close(struct publish_state *state); /* a zeroed one is fine */

/* "<folder>/new": where a copy of the next checkpoint is made; heap, the caller's. */
char *publish_state_new_path(const struct publish_state *state);
/* That copy, if there is one, becomes the pending step's. Where an earlier call has made the same
 * step pending, its delta, if proven, and what it sent still count, but not its copy: a power cut
 * may have taken bytes of it. Another one that is pending is dropped. Saves. */
int publish_state_set_pending(
	struct publish_state *state, const struct publish_mark *mark, struct error *err);

/* Writes state.json; then removes step folders that it does not name. */
int publish_state_save(struct publish_state *state, struct error *err);
/* The pending step is published: it becomes the baseline, by its copy or else by its delta. With
 * neither there is no base. Saves. */
int publish_state_commit(struct publish_state *state, bool with_anchor, struct error *err);
/* The copy at publish_state_new_path is one of the committed step, which is the base from now on.
 * Saves. */
int publish_state_set_base(struct publish_state *state, struct error *err);
/* The step's folder holds a copy: it is the committed step and the base. Saves. */
int publish_state_adopt(
	struct publish_state *state, const struct publish_mark *mark, struct error *err);
/* There is no committed step any more, and no base. Does not save. */
void publish_state_forget(struct publish_state *state);
/* Forgets the pending step and its folder. Saves. */
int publish_state_drop_pending(struct publish_state *state, struct error *err);

/* Whether the pending step's delta is what its digests say. A delta that was made while the
 * checkpoint changed is not, and looks the same: so each is unproven from before it is made until
 * the checkpoint has been found unchanged behind it. */
bool publish_state_is_proven(const struct publish_state *state);
int publish_state_set_proven(const struct publish_state *state, bool is_proven, struct error *err);

/* "<folder>/step-NNNNNN/<name>"; heap, the caller's. */
char *publish_state_path(const struct publish_state *state, uint64_t step, const char *name);
/* "<folder>/<name>". */
char *publish_state_work_path(const struct publish_state *state, const char *name);

/* The pending step's uploads. */
int publish_state_add_sent(
	const struct publish_state *state, const char *target, struct error *err);
/* The text of `sent`: empty when there is none. */
int publish_state_read_sent(
	const struct publish_state *state, struct buffer *out, struct error *err);
int publish_state_clear_sent(const struct publish_state *state, struct error *err);

#endif
