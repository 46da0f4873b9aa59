/* Runs and their steps: opened with an epoch, published to, read, collected. Publishing is one
 * change that verifies presence, size and digest of every object, base = head, epoch and schema;
 * reading an anchor's safetensors headers (through storage, verified) happens on a helper before it
 * queues. design: steps count 0, 1, 2, ... without gaps. */
#ifndef STORAGE_RUNS_RUN_H
#define STORAGE_RUNS_RUN_H

#include "storage/core/call.h"
#include "storage/run_tables/run_ref.h"
#include "storage/versions/object.h"
#include "wire/step_message.h"

int run_check_name(struct span name, struct error *err);

/* no_bucket, no_run. */
int run_find(struct store *store, const struct run_ref *run, struct arena *arena,
	struct run_message *out, struct error *err);
/* no_bucket. */
int run_list(struct store *store, const struct run_scan *scan, struct arena *arena,
	struct run_message **out, size_t *out_count, struct error *err);

/* Reading steps. no_run, no_step; a removed step gives collected and *out_anchor the nearest anchor
 * kept above it (UINT64_MAX: none). */
struct run_step_params {
	struct run_ref run;
	uint64_t step;
	bool with_tensors;
};
int run_find_step(struct store *store, const struct run_step_params *params, struct arena *arena,
	struct step_message *out, uint64_t *out_anchor, struct error *err);
/* The newest good step when it is above `after` (has_after false: any). not_ready when there is
 * none yet. */
struct run_latest_params {
	struct run_ref run;
	bool has_after;
	uint64_t after;
};
int run_find_latest(struct store *store, const struct run_latest_params *params,
	struct arena *arena, struct step_message *out, struct error *err);
/* Up to `limit` steps from `from` on. */
struct run_steps_scan {
	struct run_ref run;
	uint64_t from;
	size_t limit;
};
int run_list_steps(struct store *store, const struct run_steps_scan *scan, struct arena *arena,
	struct step_message **out, size_t *out_count, struct error *err);
/* The object of a step as published, by its name "anchor/model.safetensors" or
 * "delta/delta.safetensors" (form kind, slash, name). */
struct run_file_ref {
	struct run_ref run;
	uint64_t step;
	struct span name;
};
int run_find_object(struct store *store, const struct run_file_ref *ref, struct arena *arena,
	struct object *out, uint64_t *out_anchor, struct error *err);
/* A file of any kept step's checkpoint, whether or not the step was published with an anchor: ETag
 * "<digest in hex>-d". Where its bytes are not made yet, *out has sequence 0 and says what the
 * manifest promises (not_ready when that does not tell); run_ask_anchor has them made. no_run,
 * no_step, collected, step_failed, no_key. *out_anchor is set whenever the step is there. */
struct run_anchor {
	int64_t run;
	int64_t id;
	uint64_t step;
	/* not an anchor, but the step in another reader's layout (storage/step_jobs/view_job.h), of
	 * this kind: */
	bool is_view;
	int view;
};
int run_find_anchor_file(struct store *store, const struct run_file_ref *ref, struct arena *arena,
	struct object *out, struct run_anchor *out_anchor, struct error *err);
/* The same by key, "{run}/anchors/step_000005/model.safetensors". no_key also where there is no
 * such run or step. A key of a view that is still to be made is not_ready, with *out_anchor set. */
int run_find_anchor_key(struct store *store, struct bucket_ref bucket, struct span key,
	struct arena *arena, struct object *out, struct run_anchor *out_anchor, struct error *err);
/* 1: the key belongs to a view that is still to be made, with *out_view for run_ask_anchor; 0: it
 * does not, and out_view->is_view tells whether views have such keys; -1. */
int run_find_view(struct store *store, struct bucket_ref bucket, struct span key,
	struct run_anchor *out_view, struct error *err);
/* Keys of views that are still to be made, at most `most` of those that begin with `prefix`: of one
 * object, or what all keys of a version folder begin with (then it ends in '/'). Texts in the
 * arena. Only the newest views that the store has still to make are looked at: that is what readers
 * wait for. no_bucket. */
int run_list_pending(struct store *store, struct bucket_ref bucket, struct span prefix, size_t most,
	struct arena *arena, struct span *out, size_t *out_count, struct error *err);
/* 0: it is being made, and when that has ended, well or not, step_watch wakes who waits for
 * run_anchors_topic with an empty bucket. Else why it cannot be. */
int run_ask_anchor(struct store *store, const struct run_anchor *anchor, struct error *err);
struct span run_anchors_topic(void);
/* The object of a fold, by the steps it leads from and to and its name. no_run, no_key. */
struct run_fold_ref {
	struct run_ref run;
	uint64_t from;
	uint64_t to;
	struct span name;
};
int run_find_fold_object(struct store *store, const struct run_fold_ref *ref, struct arena *arena,
	struct object *out, struct error *err);
/* The cheapest way in bytes, over anchors, deltas and folds. `has_have` with a digest that is not
 * that step's starts from an anchor. no_step, collected, not_ready (no anchor). 1: it takes longer
 * than a reactor should be held up: ask again with `may_take_long`, on a helper. */
struct run_path_params {
	struct run_ref run;
	bool has_have;
	uint64_t have;
	bool has_digest;
	struct digest128 digest;
	bool want_latest;
	uint64_t want;
	bool may_take_long;
	/* a direct fold from `have` to the head that would save much is queued, unless it was
	 * before; so it is when a replica with a lease holds that step */
	bool asks_fold;
};
struct run_path_facts {
	uint64_t anchor; /* with collected; UINT64_MAX: none */
	/* a direct fold that would save much is queued: a wait for run_folds_topic may give a
	 * cheaper way */
	bool fold_is_due;
};
int run_find_path(struct store *store, const struct run_path_params *params, struct arena *arena,
	struct path_message *out, struct run_path_facts *out_facts, struct error *err);
/* The name under which step_watch tells that a fold of the run was made or refused. */
struct span run_folds_topic(struct span run, struct arena *arena);

/* Calls (storage/core/call.h). All params are copied; texts of a result live as long as the
 * call. */
struct run_open_params {
	struct run_ref run;
	bool has_keep_steps; /* sets retention along */
	uint64_t keep_steps;
	/* precondition when the current epoch is another (guards against opening twice by retry) */
	bool has_expected_epoch;
	uint64_t expected_epoch;
};
struct call *run_open_call(struct store *store, const struct run_open_params *params);
/* The run as it was opened; also of run_fork_call (storage/step_jobs/run_fork.h). */
const struct run_message *run_open_result(const struct call *call);
/* `settings`: a JSON object of those to change (wire/run_settings_message.h). no_run, invalid. */
struct call *run_settings_call(
	struct store *store, const struct run_ref *run, struct span settings);
const struct run_message *run_settings_result(const struct call *call);
/* Errors: no_run, stale_epoch, head_moved, base_missing, step_differs, digest_mismatch,
 * schema_mismatch, incomplete_anchor, no_key, invalid. */
struct call *run_publish_call(
	struct store *store, const struct run_ref *run, const struct step_message *step);
/* The run as it is now. *out_already: the same step was there. */
const struct run_message *run_publish_result(const struct call *call, bool *out_already);
/* chain_in_use when a kept step needs it, and for the head. */
struct call *run_collect_call(struct store *store, const struct run_ref *run, uint64_t step);
/* What the run's webhooks are signed with: hex, NUL-terminated. For those who may write the run. */
enum { RUN_WEBHOOK_SECRET_BYTES = 65 };
int run_webhook_secret(struct store *store, const struct run_ref *run,
	char out[RUN_WEBHOOK_SECRET_BYTES], struct error *err);
/* Ends the run: its name is free again at once; objects are released in slices by the sweeper. */
struct call *run_delete_call(struct store *store, const struct run_ref *run);

#endif
