/* The one epoch that all ranks of a step write under: rank 0 opens the run and leaves it in the
 * file `epoch` of the folder that all ranks share; the others wait for it there. */
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
	const char *shared; /* folder of all ranks' states */
};

/* Sets the epoch of `state`: the given one, the one that rank 0 has or opens, or the one that rank
 * 0 wrote. not_ready when rank 0 writes none in time; otherwise as opening a run. 1: rank 0 takes a
 * run over, which it leaves to its writer until rank_epoch_open. */
int rank_epoch_settle(
	const struct rank_epoch_params *params, struct publish_state *state, struct error *err);
/* Rank 0 becomes the run's writer, and tells the others. */
int rank_epoch_open(
	const struct rank_epoch_params *params, struct publish_state *state, struct error *err);
enum { RANK_EPOCH_REJOIN_S = 10 };
/* The run is at another epoch than this rank's: 1 when rank 0 has opened it anew meanwhile, as it
 * does when the ranks are numbered otherwise than before, and state has the new epoch; 0 when
 * nobody of ours has within that time. */
int rank_epoch_rejoin(const struct rank_epoch_params *params, uint64_t wait_s,
	struct publish_state *state, struct error *err);

#endif
