#include "client/run_claim.h"

#include <inttypes.h>

static int judge(const struct run_message *const found, const struct run_name *const run, const char *const state_folder,
	const uint64_t *const own_epoch, struct error *const err)
{
	if (!found->has_head || found->epoch == 0 || (own_epoch != NULL && *own_epoch == found->epoch))
		return 0;
	return error_set(err, ERROR_STALE_EPOCH, "run %s is at step %" PRIu64 " and has another publisher, and %s has never published to it. Give the "
		"--state folder of that publisher to go on with it; or, when this one shall take its place and end it, add --take-over", run->text,
		found->head, state_folder);
}

int run_claim_check(struct remote *const remote, const struct run_name *const run, const char *const state_folder,
	const uint64_t *const own_epoch, struct error *const err)
{
	struct run_message found;
	struct error failure = {0};
	struct arena *const arena = arena_new(REMOTE_RUN_ARENA_BYTES);
	int result = remote_run_find(remote, run, arena, &found, &failure);
	if (result == 0) {
		result = judge(&found, run, state_folder, own_epoch, err);
	} else if (failure.kind == ERROR_NO_RUN || failure.kind == ERROR_NO_BUCKET) {
		result = 0;
	} else {
		*err = failure;
	}
	arena_free(arena);
	return result;
}
