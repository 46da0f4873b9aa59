/* What is said where a bucket is not there: that --create-bucket makes it, unless none can be made
 * of that name. */
#ifndef CLIENT_REMOTE_MISSING_BUCKET_H
#define CLIENT_REMOTE_MISSING_BUCKET_H

#include "client/remote/remote_run.h"

/* For commands without --create-bucket: -1 with no_bucket. */
int missing_bucket_refuse(struct span name, struct error *err);
/* Before anything is begun for a run: -1 when its bucket is not there and none can be made of its
 * name, with no_bucket, or, where the user wants it made, with bad_name; or when the server cannot
 * be asked. */
int missing_bucket_check(
	struct remote *remote, const struct run_name *run, bool wants_made, struct error *err);

#endif
