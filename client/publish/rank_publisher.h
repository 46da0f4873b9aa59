/* `deltabucket publish --rank I/N`: one of N ranks that publish one step together. Each rank
 * uploads its own shards, as an anchor or as deltas against the shards that it published last, and
 * puts its part. The server publishes the step with the last part, and every rank returns when the
 * step is published. Each rank has a state folder that remembers its baseline, as for a lone
 * publisher (publish_state.h). A kill at any moment leaves a state from which the same command
 * continues. */
#ifndef CLIENT_PUBLISH_RANK_PUBLISHER_H
#define CLIENT_PUBLISH_RANK_PUBLISHER_H

#include "client/publish/publisher.h"

struct rank_order {
	uint64_t rank, ranks; /* rank < ranks */
	/* without an epoch rank 0 opens the run, and the others read the epoch that it wrote into
	 * the state folder that all share */
	bool has_epoch;
	uint64_t epoch;
	uint64_t wait_s; /* how long to wait for the other ranks */
};

/* As publisher_run. not_ready when the other ranks do not put their parts in time; unsupported when
 * something other than weights changed and the order does not ask for an anchor. */
int rank_publisher_run(struct session *session, const char *run, const struct publish_order *order,
	const struct rank_order *rank, struct publish_outcome *out_outcome, struct error *err);

#endif
