#include "api/route/router.h"

#include "api/steps/handlers.h"
#include "api/steps/steps_request.h"

#define RUN  "/v1/runs/{bucket}/{run}"
#define READ METHOD_GET | METHOD_HEAD

const struct route steps_routes[] = {
	{READ, "/v1/runs/{bucket}", NULL, ACCESS_BUCKET_RUNS, BODY_NONE, &face_steps, "ListRuns",
		list_runs_begin, NULL, NULL},
	{READ, RUN, NULL, ACCESS_RUN_READ, BODY_NONE, &face_steps, "RunStatus", run_status_begin,
		NULL, NULL},
	{METHOD_POST, RUN, NULL, ACCESS_RUN_WRITE, BODY_SMALL, &face_steps, "OpenRun",
		open_run_begin, open_run_finish, open_run_resume},
	{METHOD_DELETE, RUN, NULL, ACCESS_RUN_WRITE, BODY_NONE, &face_steps, "DeleteRun",
		delete_run_begin, NULL, steps_request_resume_empty},
	{METHOD_PUT, RUN "/settings", NULL, ACCESS_RUN_WRITE, BODY_SMALL, &face_steps,
		"RunSettings", run_settings_begin, run_settings_finish, run_settings_resume},
	{METHOD_GET, RUN "/webhook", NULL, ACCESS_RUN_WRITE, BODY_NONE, &face_steps, "RunWebhook",
		run_webhook_begin, NULL, NULL},
	{READ, RUN "/path", NULL, ACCESS_RUN_READ, BODY_NONE, &face_steps, "StepPath",
		step_path_begin, NULL, step_path_resume},
	{READ, RUN "/replicas", NULL, ACCESS_RUN_FLEET, BODY_NONE, &face_steps, "ListReplicas",
		list_replicas_begin, NULL, NULL},
	{READ, RUN "/replicas/{id}", NULL, ACCESS_RUN_FLEET, BODY_NONE, &face_steps, "GetReplica",
		get_replica_begin, NULL, NULL},
	{METHOD_PUT, RUN "/replicas/{id}", NULL, ACCESS_RUN_FLEET, BODY_SMALL, &face_steps,
		"PutReplica", put_replica_begin, put_replica_finish, put_replica_resume},
	{METHOD_DELETE, RUN "/replicas/{id}", NULL, ACCESS_RUN_FLEET, BODY_NONE, &face_steps,
		"DeleteReplica", delete_replica_begin, NULL, steps_request_resume_empty},
	{READ, RUN "/pins", NULL, ACCESS_RUN_READ, BODY_NONE, &face_steps, "ListPins",
		list_pins_begin, NULL, NULL},
	{READ, RUN "/pins/{name}", NULL, ACCESS_RUN_READ, BODY_NONE, &face_steps, "GetPin",
		get_pin_begin, NULL, NULL},
	{METHOD_PUT, RUN "/pins/{name}", NULL, ACCESS_RUN_WRITE, BODY_SMALL, &face_steps, "PutPin",
		put_pin_begin, put_pin_finish, put_pin_resume},
	{METHOD_DELETE, RUN "/pins/{name}", NULL, ACCESS_RUN_WRITE, BODY_NONE, &face_steps,
		"DeletePin", delete_pin_begin, NULL, steps_request_resume_empty},
	{READ, RUN "/steps", NULL, ACCESS_RUN_READ, BODY_NONE, &face_steps, "ListSteps",
		list_steps_begin, NULL, NULL},
	{METHOD_GET, RUN "/steps/latest", NULL, ACCESS_RUN_READ, BODY_NONE, &face_steps,
		"LatestStep", latest_step_begin, NULL, latest_step_resume},
	{READ, RUN "/steps/{step}", NULL, ACCESS_RUN_READ, BODY_NONE, &face_steps, "GetStep",
		get_step_begin, NULL, NULL},
	{METHOD_PUT, RUN "/steps/{step}", NULL, ACCESS_RUN_WRITE, BODY_SMALL, &face_steps,
		"PublishStep", publish_step_begin, publish_step_finish, publish_step_resume},
	{METHOD_PUT, RUN "/steps/{step}/parts/{part}", NULL, ACCESS_RUN_WRITE, BODY_SMALL,
		&face_steps, "PutPart", put_part_begin, put_part_finish, put_part_resume},
	{METHOD_DELETE, RUN "/steps/{step}", NULL, ACCESS_RUN_WRITE, BODY_NONE, &face_steps,
		"DeleteStep", delete_step_begin, NULL, steps_request_resume_empty},
	{READ, RUN "/steps/{step}/objects/{name*}", NULL, ACCESS_RUN_READ, BODY_NONE, &face_steps,
		"StepObject", step_object_begin, NULL, step_object_resume},
	{READ, RUN "/folds/{steps}/objects/{name*}", NULL, ACCESS_RUN_READ, BODY_NONE, &face_steps,
		"FoldObject", fold_object_begin, NULL, NULL},

	{.pattern = NULL},
};
