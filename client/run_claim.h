/* Whether a publisher that has never written to a run may open it: opening fences off whoever writes it now. */
#ifndef CLIENT_RUN_CLAIM_H
#define CLIENT_RUN_CLAIM_H

#include "client/remote_run.h"

/* 0: there is no such run, it has no writer or no step yet, or its writer's epoch is `*own_epoch` (NULL: none is ours). Else stale_epoch,
 * and the sentence names `state_folder` and --take-over. Any other failure of asking is given as it is. */
int run_claim_check(struct remote *remote, const struct run_name *run, const char *state_folder, const uint64_t *own_epoch,
	struct error *err);

#endif
