/* Several threads that take pieces of one job until none is left or one fails; each with a connection of its own. */
#ifndef CLIENT_POOL_H
#define CLIENT_POOL_H

#include "client/remote.h"

/* Does the next piece: 1 when there may be more, 0 when none is left for this thread, -1 with the error set. Called on several threads at once. */
typedef int pool_piece_fn(void *job, struct remote *remote, struct error *err);

/* Runs `piece` on up to `threads` threads (the caller's among them) until all have got 0. -1 with the first failure; the others then end after the
 * piece they are in. */
int pool_run(const struct remote_options *remote, unsigned threads, pool_piece_fn *piece, void *job, struct error *err);

#endif
