/* `deltabucket publish --rank I/N`: one of many ranks that publish one step together. Each uploads
 * its own shards, as an anchor or as deltas against those that it published last, and puts its
 * part; the server publishes the step with the last part, and every rank returns once the step is
 * there. A state folder per rank remembers the baseline, as for a lone publisher
 * (client/publish/publish_state.h); any kill leaves a state from which the same command goes on. */
#ifndef CLIENT_PUBLISH_RANK_PUBLISHER_H
#define CLIENT_PUBLISH_RANK_PUBLISHER_H

#include "client/publish/publisher.h"

struct rank_order {
	uint64_t rank, ranks;
	/* otherwise rank 0 opens the run, and the others read what it wrote into the state folder
	 * that all share */
	bool has_epoch;
	uint64_t epoch;
	uint64_t wait_s; /* how long to wait for the other ranks */
};

/* As publisher_run; not_ready when the other ranks do not come. unsupported when something other
 * than weights changed and the order is not for an anchor. */
int rank_publisher_run(struct session *session, const char *run, const struct publish_order *order,
	const struct rank_order *rank, struct publish_outcome *out_outcome, struct error *err);

#endif
