/* Whether a publisher may open a run: opening fences off whoever writes it now. */
#ifndef CLIENT_PUBLISH_RUN_CLAIM_H
#define CLIENT_PUBLISH_RUN_CLAIM_H

#include "client/remote/remote_run.h"

struct run_claim {
	const char *state_folder;  /* named in the sentence */
	const uint64_t *own_epoch; /* the last one that was ours; NULL: none was */
	bool take_over;            /* the user wants the other writer's place */
};

/* 1 with the run: it may be opened. 0: there is no such run, or no such bucket. -1: denied when the
 * key may not write to the run; stale_epoch when it has a step and its writer's epoch is not ours,
 * unless this takes over; any other failure of asking as it is. */
int run_claim_check(struct remote *remote, const struct run_name *run,
	const struct run_claim *claim, struct arena *arena, struct run_message *out,
	struct error *err);

#endif
