/* The error for a bucket that does not exist: it says that --create-bucket makes it, or that no
 * bucket can have this name. */
#ifndef CLIENT_REMOTE_MISSING_BUCKET_H
#define CLIENT_REMOTE_MISSING_BUCKET_H

#include "client/remote/remote_run.h"

/* For calls without --create-bucket: -1 with no_bucket. */
int missing_bucket_refuse(struct span name, struct error *err);
/* To be called with the failure of a HEAD in *err, which does not tell whether the bucket of a
 * missing object exists: asks the server, and makes no_key no_bucket if it does not. Always -1. */
int missing_bucket_explain(struct remote *remote, struct span name, struct error *err);
/* To be called before any other work on a run. -1 when its bucket does not exist and no bucket can
 * have its name: with bad_name when `wants_made` (the user asks for it to be made), otherwise with
 * no_bucket. -1 with the error of the request when the server cannot be asked. */
int missing_bucket_check(
	struct remote *remote, const struct run_name *run, bool wants_made, struct error *err);

#endif
