/* The epoch that all ranks of a step write under. Rank 0 opens the run and writes the epoch to the
 * file `epoch` in the folder that all ranks share. The other ranks wait for it there. */
#ifndef CLIENT_PUBLISH_RANK_EPOCH_H
#define CLIENT_PUBLISH_RANK_EPOCH_H

#include "client/publish/rank_publisher.h"
#include "client/remote/remote_run.h"

struct rank_epoch_params {
	struct session *session;
	const struct publish_order *order;
	const struct rank_order *rank;
	const struct run_name *run;
	struct remote *remote;
	const char *shared; /* the folder that holds the state folders of all ranks */
};

/* Sets the epoch of `state`: the one that was given; otherwise on rank 0 the one that it has or
 * opens, and on other ranks the one that rank 0 wrote. not_ready when rank 0 writes none in time;
 * other failures as when opening a run. 1 when rank 0 takes a run over: the run stays with its
 * writer until rank_epoch_open. */
int rank_epoch_settle(
	const struct rank_epoch_params *params, struct publish_state *state, struct error *err);
/* For ranks without a folder in common: opens the run for all of them before anything is published,
 * as publisher_run would. *epoch: 0, or the last one that was the caller's; then the new one.
 * stale_epoch when the run has another writer and the order does not take it over. */
int rank_epoch_new(struct session *session, const char *run, const struct publish_order *order,
	uint64_t *epoch, struct error *err);
/* Makes rank 0 the run's writer and writes the epoch for the other ranks. Only on rank 0. */
int rank_epoch_open(
	const struct rank_epoch_params *params, struct publish_state *state, struct error *err);
enum { RANK_EPOCH_REJOIN_S = 10 };
/* Called when the run is at another epoch than this rank. Waits up to wait_s seconds for a new
 * epoch from rank 0, which opens the run again when the ranks are numbered differently than before.
 * 1 when `state` has the new epoch; 0 when rank 0 wrote none in time. */
int rank_epoch_rejoin(const struct rank_epoch_params *params, uint64_t wait_s,
	struct publish_state *state, struct error *err);

#endif
