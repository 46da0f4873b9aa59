/* `deltabucket follow`: keeps a folder on the newest step of a run, or brings one step. The loop
 * asks for the way from what it holds, fetches and proves a new generation beside the old one,
 * swaps, runs --exec, and waits for the next step. Network failures never end it; damage is cured
 * once from an anchor; a signal ends it between two steps or inside a download, and what was
 * downloaded stays for the next start. */
#ifndef CLIENT_FOLLOW_FOLLOWER_H
#define CLIENT_FOLLOW_FOLLOWER_H

#include "client/transfer/session.h"

struct follow_order {
	const char *run;
	const char *into;
	const char *exec; /* NULL: none */
	/* end when on the newest step, or with failure when it cannot be had now */
	bool once;
	bool has_step; /* bring this step, then end */
	uint64_t step;
	uint64_t wait_s; /* with once: how long to wait for a step to appear */
	uint64_t poll_s;
	uint64_t keep;
	const struct subset *subset; /* NULL: all tensors */
	const char *replica;         /* its id in the fleet; NULL: one of its own */
	unsigned threads;
	/* weights are not synced: a power cut may take bytes of what is current */
	bool is_volatile;
};

/* 0 when --once or --step is done, or SIGTERM came; otherwise only an error ends it. */
int follower_run(struct session *session, const struct follow_order *order, struct error *err);

#endif
