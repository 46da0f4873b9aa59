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
	ASSERT(found->has_head && claim->own_epoch != NULL);
	return error_set(err, ERROR_STALE_EPOCH,
		"another publisher has taken over run %s since %s published to it (the run is at "
		"step %" PRIu64 " and epoch %" PRIu64 ", the publisher was at epoch %" PRIu64
		"); to continue with this one and stop the other, add --take-over",
		run->text, claim->state_folder, found->head, found->epoch, *claim->own_epoch);
}

static int refuse_stranger(const struct run_message *found, const struct run_name *run,
	const struct run_claim *claim, struct error *err)
{
	ASSERT(found->has_head && claim->own_epoch == NULL);
	return error_set(err, ERROR_STALE_EPOCH,
		"run %s is at step %" PRIu64
		" and has another publisher, and %s has never published to it. To continue with "
		"that publisher's state, give its --state folder; to replace that publisher and "
		"stop it, add --take-over",
		run->text, found->head, claim->state_folder);
}
