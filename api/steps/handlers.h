/* The handlers of the operations on runs, for the table in api/steps/steps_routes.c.
 * api/exchange/exchange.h says when and where each of their steps runs. */
#ifndef API_STEPS_HANDLERS_H
#define API_STEPS_HANDLERS_H

#include "api/exchange/exchange.h"

/* GET /v1/runs/{bucket}?after=&limit=: the runs of a bucket, in byte order of their names. */
enum next list_runs_begin(struct exchange *exchange);

/* GET /v1/runs/{bucket}/{run}: head, epoch, schema, retention. */
enum next run_status_begin(struct exchange *exchange);

/* POST /v1/runs/{bucket}/{run}: opens the run for writing and shuts out earlier writers. */
enum next open_run_begin(struct exchange *exchange);
enum next open_run_finish(struct exchange *exchange);
enum next open_run_resume(struct exchange *exchange);

/* DELETE /v1/runs/{bucket}/{run}: deletes a run. Its name is free at once. */
enum next delete_run_begin(struct exchange *exchange);

/* PUT /v1/runs/{bucket}/{run}/settings: changes the settings that the body names
 * (wire/run_settings_message.h). */
enum next run_settings_begin(struct exchange *exchange);
enum next run_settings_finish(struct exchange *exchange);
enum next run_settings_resume(struct exchange *exchange);

/* GET .../webhook: the URL of the run's webhook and the secret that signs its requests, for callers
 * that may write to the run. */
enum next run_webhook_begin(struct exchange *exchange);

/* GET /v1/runs/{bucket}/{run}/path?have=&digest=&want=: the cheapest path from one step, or from
 * nothing, to another. */
enum next step_path_begin(struct exchange *exchange);
enum next step_path_resume(struct exchange *exchange);

/* The replicas of a run: PUT, GET, DELETE /v1/runs/{bucket}/{run}/replicas/{id} and GET
 * .../replicas. A PUT waits only if the lease must be committed to the catalog before the reply. */
enum next put_replica_begin(struct exchange *exchange);
enum next put_replica_finish(struct exchange *exchange);
enum next put_replica_resume(struct exchange *exchange);
enum next put_chunk_begin(struct exchange *exchange);
enum next put_chunk_finish(struct exchange *exchange);
enum next get_replica_begin(struct exchange *exchange);
enum next delete_replica_begin(struct exchange *exchange); /* resume: steps_request_resume_empty */
enum next list_replicas_begin(struct exchange *exchange);

/* PUT, GET, DELETE /v1/runs/{bucket}/{run}/pins/{name}, GET .../pins. */
enum next put_pin_begin(struct exchange *exchange);
enum next put_pin_finish(struct exchange *exchange);
enum next put_pin_resume(struct exchange *exchange);
enum next get_pin_begin(struct exchange *exchange);
enum next delete_pin_begin(struct exchange *exchange); /* resume: steps_request_resume_empty */
enum next list_pins_begin(struct exchange *exchange);
enum next list_folds_begin(struct exchange *exchange);

/* PUT and DELETE /v1/runs/{bucket}/{run}/rollback: all followers serve an earlier step, until the
 * end of that. */
enum next put_rollback_begin(struct exchange *exchange);
enum next put_rollback_finish(struct exchange *exchange);
enum next delete_rollback_begin(struct exchange *exchange);
enum next rollback_resume(struct exchange *exchange);

/* GET /v1/runs/{bucket}/{run}/steps?from=&limit=: manifests in rising order of steps. */
enum next list_steps_begin(struct exchange *exchange);

/* GET /v1/runs/{bucket}/{run}/steps/latest?after=N&wait=S: the step to serve, as soon as that is
 * above N or a rollback names another, or 204 after S seconds. */
enum next latest_step_begin(struct exchange *exchange);
enum next latest_step_resume(struct exchange *exchange);

/* GET /v1/runs/{bucket}/{run}/steps/{step}: the manifest. ?tensors=true adds the digest of each
 * tensor. */
enum next get_step_begin(struct exchange *exchange);

/* PUT /v1/runs/{bucket}/{run}/steps/{step}: publishes a step. 201, or 200 when the same step exists
 * already. */
enum next publish_step_begin(struct exchange *exchange);
enum next publish_step_finish(struct exchange *exchange);
enum next publish_step_resume(struct exchange *exchange);

/* PUT /v1/runs/{bucket}/{run}/steps/{step}/parts/{part}?of=N: stores one rank's part of a step. The
 * last part publishes the step. */
enum next put_part_begin(struct exchange *exchange);
enum next put_part_finish(struct exchange *exchange);
enum next put_part_resume(struct exchange *exchange);

/* DELETE /v1/runs/{bucket}/{run}/steps/{step}: removes a step that no kept step is based on. */
enum next delete_step_begin(struct exchange *exchange);

/* GET and HEAD /v1/runs/{bucket}/{run}/steps/{step}/objects/{name*}: the bytes as published, also
 * when the key was overwritten or deleted since. */
enum next step_changes_begin(struct exchange *exchange);
enum next step_changes_resume(struct exchange *exchange);
enum next step_object_begin(struct exchange *exchange);
enum next step_object_resume(struct exchange *exchange);

/* GET and HEAD /v1/runs/{bucket}/{run}/folds/{from}-{to}/objects/{name}: the bytes of a fold.
 * Answers of GET path name these URLs. */
enum next fold_object_begin(struct exchange *exchange);

/* GET /hot_load/v1/models/hot_load: the snapshot that each replica runs, the oldest first. */
enum next get_hot_load_begin(struct exchange *exchange);
enum next get_hot_load_resume(struct exchange *exchange);

/* POST /hot_load/v1/models/hot_load: makes a snapshot in the bucket the next step. */
enum next post_hot_load_begin(struct exchange *exchange);
enum next post_hot_load_finish(struct exchange *exchange);
enum next post_hot_load_resume(struct exchange *exchange);
/* Some trainers announce what they will send. The server needs no preparation, so it only
 * confirms. */
enum next hot_load_hint_begin(struct exchange *exchange);

#endif
