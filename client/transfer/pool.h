/* Several threads that take the pieces of one job until none is left or one fails. Each thread has
 * its own connection. The caller may lend an open one for its thread, because a TLS handshake costs
 * more than a small delta. */
#ifndef CLIENT_TRANSFER_POOL_H
#define CLIENT_TRANSFER_POOL_H

#include "client/remote/remote.h"

/* Does the next piece. 1 when there may be more, 0 when none is left for this thread, -1 with the
 * error set. Several threads call it at once. */
typedef int pool_piece_fn(void *job, struct remote *remote, struct error *err);

struct pool_params {
	const struct remote_options *remote;
	struct remote *own; /* for the caller's thread; NULL: that thread opens one too */
	unsigned threads;
	pool_piece_fn *piece;
	void *job;
};
/* Runs `piece` on `threads` threads, including the caller's, until it has returned 0 on each. -1
 * with the first failure; the other threads then stop after their current piece. */
int pool_run(const struct pool_params *params, struct error *err);

#endif
