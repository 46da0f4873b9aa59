/* Runs and their steps: runs are opened with an epoch; steps are published, read and collected.
 * Publishing is one change that verifies presence, size and digest of every object, base = head,
 * epoch and schema. Before the change queues, a helper reads the safetensors headers of an anchor
 * (through storage, verified). By design steps count 0, 1, 2, ... without gaps. */
#ifndef STORAGE_RUNS_RUN_H
#define STORAGE_RUNS_RUN_H

#include "storage/core/call.h"
#include "storage/run_tables/run_ref.h"
#include "storage/versions/object.h"
#include "wire/step_message.h"

int run_check_name(struct span name, struct error *err);

/* Fails with no_bucket or no_run. */
int run_find(struct store *store, const struct run_ref *run, struct arena *arena,
	struct run_message *out, struct error *err);
/* The same on a connection that the caller has. */
int run_find_in(struct db *db, const struct run_ref *run, struct arena *arena,
	struct run_message *out, struct error *err);
/* Fails with no_bucket. */
int run_list(struct store *store, const struct run_scan *scan, struct arena *arena,
	struct run_message **out, size_t *out_count, struct error *err);

/* Reading steps. Fails with no_run or no_step; for a removed step with collected, and *out_anchor
 * is the nearest anchor that is kept above it (UINT64_MAX: none). */
struct run_step_params {
	struct run_ref run;
	uint64_t step;
	bool with_tensors;
};
int run_find_step(struct store *store, const struct run_step_params *params, struct arena *arena,
	struct step_message *out, uint64_t *out_anchor, struct error *err);
/* The step that the fleet is to serve: the newest good one or, during a rollback, that of it (or
 * the newest good one below, if its proof has failed since). Fails with not_ready when there is
 * none yet, when it is below `least`, and when a caller that has the step `after` need not do
 * anything: because it is `after`, or below it and no rollback says so. */
struct run_latest_params {
	struct run_ref run;
	bool has_after;
	uint64_t after;
	uint64_t least;
	bool of_head; /* whatever the rollback says */
};
int run_find_latest(struct store *store, const struct run_latest_params *params,
	struct arena *arena, struct step_message *out, struct error *err);
/* Up to `limit` steps from `from` upwards. */
struct run_steps_scan {
	struct run_ref run;
	uint64_t from;
	size_t limit;
};
int run_list_steps(struct store *store, const struct run_steps_scan *scan, struct arena *arena,
	struct step_message **out, size_t *out_count, struct error *err);
/* An object of a step as published. Its name is form kind, slash, name: "anchor/model.safetensors"
 * or "delta/delta.safetensors". */
struct run_file_ref {
	struct run_ref run;
	uint64_t step;
	struct span name;
};
int run_find_object(struct store *store, const struct run_file_ref *ref, struct arena *arena,
	struct object *out, uint64_t *out_anchor, struct error *err);
/* An anchor or view that the server can make. */
struct run_anchor {
	int64_t run;
	int64_t id; /* of the step's row */
	uint64_t step;
	bool is_view; /* it is a view (storage/step_jobs/view_job.h), of this kind: */
	int view;
};
/* A file of any kept step's checkpoint, whether or not the step was published with an anchor. Its
 * ETag is "<digest in hex>-d". If its bytes are not made yet, *out has sequence 0 and what the
 * manifest promises (not_ready when the manifest does not say); run_ask_anchor has them made. Fails
 * with no_run, no_step, collected, step_failed or no_key. *out_anchor is set whenever the step
 * exists. */
int run_find_anchor_file(struct store *store, const struct run_file_ref *ref, struct arena *arena,
	struct object *out, struct run_anchor *out_anchor, struct error *err);
/* The same by key, "{run}/anchors/step_000005/model.safetensors". `ref` names the current version.
 * no_key also when there is no such run or step. The key of a view that is still to be made gives
 * not_ready, with *out_anchor set. */
int run_find_anchor_key(struct store *store, const struct object_ref *ref, struct arena *arena,
	struct object *out, struct run_anchor *out_anchor, struct error *err);
/* 1: the key belongs to a view that is still to be made, and *out_view is for run_ask_anchor. 0: it
 * does not, and out_view->is_view tells whether views have such keys. -1. */
int run_find_view(struct store *store, struct bucket_ref bucket, struct span key,
	struct run_anchor *out_view, struct error *err);
/* Keys of views that are still to be made: at most `limit` of those that begin with `prefix`. Each
 * is the key of one object or, ending in '/', the beginning of all keys of a version folder. Texts
 * lie in the arena. Only the newest views that the store has still to make are considered, because
 * readers wait for these. Fails with no_bucket. */
struct run_pending_scan {
	struct bucket_ref bucket;
	struct span prefix;
	size_t limit; /* `out` has room for so many */
};
int run_list_pending(struct store *store, const struct run_pending_scan *scan, struct arena *arena,
	struct span *out, size_t *out_count, struct error *err);
/* 0: it is being made; when that has ended, with success or not, step_watch wakes the waiters for
 * run_anchors_topic with an empty bucket. -1: it cannot be made; the error says why. */
int run_ask_anchor(struct store *store, const struct run_anchor *anchor, struct error *err);
struct span run_anchors_topic(void);
/* An object of a fold, by the steps that the fold leads from and to, and its name. Fails with
 * no_run or no_key. */
struct run_fold_ref {
	struct run_ref run;
	uint64_t from;
	uint64_t to;
	struct span name;
};
int run_find_fold_object(struct store *store, const struct run_fold_ref *ref, struct arena *arena,
	struct object *out, struct error *err);
/* The cheapest path in bytes, over anchors, deltas and folds. When `digest` is given and is not
 * that of the step `have`, the path begins with an anchor. Fails with no_step, collected,
 * step_failed or not_ready (no anchor). 1: it takes too long for a reactor: ask again with
 * `may_take_long`, on a helper. */
struct run_path_params {
	struct run_ref run;
	bool has_have;
	uint64_t have;
	bool has_digest;
	struct digest128 digest;
	bool want_latest; /* the step that the fleet is to serve, as run_find_latest has it */
	uint64_t want;
	bool may_take_long;
	/* requests a direct fold from `have` to the head if it would save much and was not
	 * requested before; a replica with a lease that holds `have` has the same effect */
	bool asks_fold;
};
struct run_path_facts {
	/* with the error collected: the nearest anchor above; UINT64_MAX: none */
	uint64_t anchor;
	/* a direct fold that would save much is wanted: after a wait for run_folds_topic there may
	 * be a cheaper path */
	bool fold_is_due;
};
int run_find_path(struct store *store, const struct run_path_params *params, struct arena *arena,
	struct path_message *out, struct run_path_facts *out_facts, struct error *err);
/* The topic under which step_watch announces that a fold of the run was made or refused. */
struct span run_folds_topic(struct span run, struct arena *arena);

/* Calls (storage/core/call.h). All params are copied; texts of a result live as long as the
 * call. */
struct run_open_params {
	struct run_ref run;
	bool has_keep_steps; /* also sets retention */
	uint64_t keep_steps;
	/* precondition when the current epoch is another; guards against opening twice by a
	 * retry */
	bool has_expected_epoch;
	uint64_t expected_epoch;
};
struct call *run_open_call(struct store *store, const struct run_open_params *params);
/* The run as it was opened. Also for run_fork_call (storage/step_jobs/run_fork.h). */
const struct run_message *run_open_result(const struct call *call);
/* `settings` is a JSON object with the settings to change (wire/run_settings_message.h). Fails with
 * no_run, invalid, exists (another run or an object stands in the way) or denied (the webhook). */
struct call *run_settings_call(
	struct store *store, const struct run_ref *run, struct span settings);
const struct run_message *run_settings_result(const struct call *call);
/* Fails with no_run, stale_epoch, head_moved, base_missing, step_differs, digest_mismatch,
 * schema_mismatch, incomplete_anchor, no_key, busy or invalid. */
struct call *run_publish_call(
	struct store *store, const struct run_ref *run, const struct step_message *step);
/* The run as it is now. *out_already: the same step had been published before. */
const struct run_message *run_publish_result(const struct call *call, bool *out_already);
/* Removes a step. chain_in_use for the head, and when a kept step, a pin, a replica or a reader
 * needs it. */
struct call *run_collect_call(struct store *store, const struct run_ref *run, uint64_t step);
/* The secret that signs the run's webhooks: hex, NUL-terminated. Only for callers that may write
 * the run. */
enum { RUN_WEBHOOK_SECRET_BYTES = 65 };
int run_webhook_secret(struct store *store, const struct run_ref *run,
	char out[RUN_WEBHOOK_SECRET_BYTES], struct error *err);
/* Ends the run. Its name is free again at once; the sweeper releases its objects in slices. */
struct call *run_delete_call(struct store *store, const struct run_ref *run);

#endif
