/* Every run of a bucket, or of all buckets that the token may list, page by page. */
#ifndef CLIENT_COMMANDS_RUN_WALK_H
#define CLIENT_COMMANDS_RUN_WALK_H

#include "client/remote/remote_run.h"
#include "client/transfer/session.h"

/* What is done with each run; the message lives as long as the call. Below 0 with `err` set ends
 * the walk. */
typedef int run_walk_fn(struct session *session, struct remote *remote,
	const struct run_message *run, struct error *err);

/* `bucket` empty: all buckets. denied says what may be asked for instead. Fails as the requests and
 * `visit` do; ends early, without an error, when nobody reads the output any more. */
int run_walk(struct session *session, struct remote *remote, struct span bucket, run_walk_fn *visit,
	struct error *err);

#endif
