/* The small JSON body of opening a run and of its settings: {"keep_steps":N,"expected_epoch":E}, each optional. */
#ifndef API_STEPS_RUN_REQUEST_H
#define API_STEPS_RUN_REQUEST_H

#include "base/error.h"
#include "base/span.h"

enum { RUN_REQUEST_MAX_BYTES = 4096 };

struct run_request {
	bool has_keep_steps;
	uint64_t keep_steps;
	bool has_expected_epoch;
	uint64_t expected_epoch;
};
/* An empty body asks for nothing. invalid when it is no JSON object or a member is no number; unknown members are passed over. */
int run_request_parse(struct span json, struct run_request *out, struct error *err);

#endif
