/* The protocol of trainers for hosted inference: a trainer names a snapshot, and asks which
 * snapshot each replica runs. The deployment comes in a header, so the handlers judge the
 * access. */
#include "api/route/router.h"

#include "api/steps/handlers.h"

#define HOT_LOAD "/hot_load/v1/models/hot_load"

const struct route hot_load_routes[] = {
	{METHOD_POST, HOT_LOAD, NULL, ACCESS_SIGNED_IN, BODY_SMALL, &face_steps, "HotLoad",
		post_hot_load_begin, post_hot_load_finish, post_hot_load_resume},
	{METHOD_GET | METHOD_HEAD, HOT_LOAD, NULL, ACCESS_SIGNED_IN, BODY_NONE, &face_steps,
		"HotLoadStatus", get_hot_load_begin, NULL, get_hot_load_resume},
	{METHOD_POST | METHOD_GET | METHOD_HEAD, HOT_LOAD "/hint", NULL, ACCESS_SIGNED_IN,
		BODY_NONE, &face_steps, "HotLoadHint", hot_load_hint_begin, NULL, NULL},
	{METHOD_POST | METHOD_GET | METHOD_HEAD, "/hot_load/v1/models/hint", NULL, ACCESS_SIGNED_IN,
		BODY_NONE, &face_steps, "HotLoadHint", hot_load_hint_begin, NULL, NULL},

	{.pattern = NULL},
};
