/* The JSON body of OpenRun: {"keep_steps":N,"expected_epoch":E,"fork":{"run":R,"step":N}}, each
 * member optional. */
#ifndef API_STEPS_RUN_REQUEST_H
#define API_STEPS_RUN_REQUEST_H

#include "base/error.h"
#include "base/arena.h"

enum { RUN_REQUEST_MAX_BYTES = 4096 };

struct run_request {
	bool has_keep_steps;
	uint64_t keep_steps;
	bool has_expected_epoch;
	uint64_t expected_epoch;
	bool has_fork;
	struct span fork_run;
	uint64_t fork_step;
};
/* An empty body sets no field. Fails with invalid when the body is not a JSON object or a member
 * has another type. Unknown members are ignored. */
int run_request_parse(
	struct span json, struct arena *arena, struct run_request *out, struct error *err);

#endif
