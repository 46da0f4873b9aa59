/* `deltabucket follow`: keeps a folder on the newest step of a run, or brings one step into it. The
 * loop asks for a path from the step that it holds, fetches and proves a new generation beside the
 * old one, swaps, runs --exec, and waits for the next step. Network failures do not end it, except
 * with --once. After damage it tries once from an anchor. A signal ends it between two steps or
 * inside a download; the downloaded files stay for the next start. */
#ifndef CLIENT_FOLLOW_FOLLOWER_H
#define CLIENT_FOLLOW_FOLLOWER_H

#include "client/transfer/session.h"

struct follow_order {
	const char *run;
	const char *into;
	const char *exec; /* NULL: none */
	bool once;     /* end when the newest step is held, or fail when it cannot be fetched now */
	bool has_step; /* bring `step`, then end */
	uint64_t step;
	uint64_t wait_s;             /* with once: how long to wait for a step to appear */
	uint64_t poll_s;             /* length of a long poll */
	uint64_t keep;               /* generations to keep beside the current one */
	const struct subset *subset; /* NULL: all tensors */
	const char *replica;         /* id in the fleet; NULL: made from host and folder */
	unsigned threads;
	/* weights are not synced: a power cut may take bytes of the current generation */
	bool is_volatile;
};

/* 0 when --once or --step is done. -1 with the error otherwise; busy when a signal came. */
int follower_run(struct session *session, const struct follow_order *order, struct error *err);

#endif
