/* Visits every run of a bucket, or of all buckets that the token may list, page by page. */
#ifndef CLIENT_COMMANDS_RUN_WALK_H
#define CLIENT_COMMANDS_RUN_WALK_H

#include "client/remote/remote_run.h"
#include "client/transfer/session.h"

/* Called for each run. The message lives as long as the call. A result below 0, with the error set,
 * ends the walk. */
typedef int run_walk_fn(struct session *session, struct remote *remote,
	const struct run_message *run, struct error *err);

/* An empty `bucket` means all buckets. Fails as the requests and `visit` do; denied also says what
 * the token may ask for instead. Ends early, without an error, when nobody reads the output any
 * more. */
int run_walk(struct session *session, struct remote *remote, struct span bucket, run_walk_fn *visit,
	struct error *err);

#endif
