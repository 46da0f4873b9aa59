#include "client/publish/run_claim.h"

#include <inttypes.h>

static int judge(const struct run_message *found, const struct run_name *run,
	const struct run_claim *claim, struct error *err);
static int refuse_fenced(const struct run_message *found, const struct run_name *run,
	const struct run_claim *claim, struct error *err);
static int refuse_stranger(const struct run_message *found, const struct run_name *run,
	const struct run_claim *claim, struct error *err);

int run_claim_check(struct remote *remote, const struct run_name *run,
	const struct run_claim *claim, struct arena *arena, struct run_message *out,
	struct error *err)
{
	struct error failure = {0};
	if (remote_run_find(remote, run, arena, out, &failure) == 0)
		return remote_run_may_write(remote, run, err) != 0 ? -1
								   : judge(out, run, claim, err);
	if (failure.kind == ERROR_NO_RUN || failure.kind == ERROR_NO_BUCKET)
		return 0;
	*err = failure;
	return -1;
}

static int judge(const struct run_message *found, const struct run_name *run,
	const struct run_claim *claim, struct error *err)
{
	const uint64_t *const own = claim->own_epoch;
	if (claim->take_over || !found->has_head || found->epoch == 0 ||
		(own != NULL && *own == found->epoch))
		return 1;
	return own != NULL ? refuse_fenced(found, run, claim, err)
			   : refuse_stranger(found, run, claim, err);
}

static int refuse_fenced(const struct run_message *found, const struct run_name *run,
	const struct run_claim *claim, struct error *err)
{
	return error_set(err, ERROR_STALE_EPOCH,
		"another publisher has taken run %s over since %s published to it (the run is at step %" PRIu64
		" and epoch %" PRIu64 ", that of the folder is %" PRIu64
		"); when this one shall go on instead and end the other, add --take-over",
		run->text, claim->state_folder, found->head, found->epoch, *claim->own_epoch);
}

static int refuse_stranger(const struct run_message *found, const struct run_name *run,
	const struct run_claim *claim, struct error *err)
{
	return error_set(err, ERROR_STALE_EPOCH,
		"run %s is at step %" PRIu64
		" and has another publisher, and %s has never published to it. Give the "
		"--state folder of that publisher to go on with it; or, when this one shall take its place and end it, add --take-over",
		run->text, found->head, claim->state_folder);
}
