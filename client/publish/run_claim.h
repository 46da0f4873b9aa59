/* Whether a publisher may open a run. Opening raises the epoch, which shuts out the run's
 * writer. */
#ifndef CLIENT_PUBLISH_RUN_CLAIM_H
#define CLIENT_PUBLISH_RUN_CLAIM_H

#include "client/remote/remote_run.h"

struct run_claim {
	const char *state_folder;  /* named in the message */
	const uint64_t *own_epoch; /* the last epoch that was ours; NULL: none was */
	bool take_over;            /* the user wants to replace the other writer */
};

/* 1 with the run when it may be opened. 0 when the run or its bucket does not exist. -1 with denied
 * when the key may not write to the run; with stale_epoch when the run has a step and its epoch is
 * not ours, unless the claim takes over; and with the failure of the request otherwise. */
int run_claim_check(struct remote *remote, const struct run_name *run,
	const struct run_claim *claim, struct arena *arena, struct run_message *out,
	struct error *err);

#endif
