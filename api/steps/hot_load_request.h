/* The body of a hot-load, as trainers of hosted inference send it. Members without a field here are
 * ignored. docs/protocol/steps.md, "Hot-loads". */
#ifndef API_STEPS_HOT_LOAD_REQUEST_H
#define API_STEPS_HOT_LOAD_REQUEST_H

#include "base/arena.h"
#include "base/error.h"

enum { HOT_LOAD_REQUEST_MAX_BYTES = 64 * 1024 };

struct hot_load_request {
	struct span identity;
	bool is_incremental;
	struct span previous; /* with is_incremental */
};
/* Texts lie in the arena. Fails with invalid when the body is not a JSON object, lacks the identity
 * or has members of other types, and with snapshot_format for a compression or checksum that this
 * server cannot read, such as arc_v2. */
int hot_load_request_parse(
	struct span json, struct arena *arena, struct hot_load_request *out, struct error *err);

#endif
