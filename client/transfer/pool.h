/* Several threads that take pieces of one job until none is left or one fails; each with a
 * connection of its own, but the caller's may lend one that is open already (a TLS handshake costs
 * more than a small delta). */
#ifndef CLIENT_TRANSFER_POOL_H
#define CLIENT_TRANSFER_POOL_H

#include "client/remote/remote.h"

/* Does the next piece: 1 when there may be more, 0 when none is left for this thread, -1 with the
 * error set. Called on several threads at once. */
typedef int pool_piece_fn(void *job, struct remote *remote, struct error *err);

struct pool_params {
	const struct remote_options *remote;
	struct remote *own; /* for the caller's thread; NULL: it opens one too */
	unsigned threads;
	pool_piece_fn *piece;
	void *job;
};
/* Runs `piece` on up to `threads` threads (the caller's among them) until all have got 0. -1 with
 * the first failure; the others then end after the piece they are in. */
int pool_run(const struct pool_params *params, struct error *err);

#endif
