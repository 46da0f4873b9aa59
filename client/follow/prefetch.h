/* A thread that brings the next steps' files while this step is being made or its --exec runs. It
 * waits for something newer than what is about to be held, downloads the way there into the work
 * folder, and from then on looks again every second; the next catch_up finds the files there. Its
 * failures are silent: whoever needs the files asks again and then hears of it. */
#ifndef CLIENT_FOLLOW_PREFETCH_H
#define CLIENT_FOLLOW_PREFETCH_H

#include "client/follow/follow_folder.h"
#include "client/remote/remote_run.h"
#include "client/transfer/transfer.h"

struct prefetch;

struct prefetch_params { /* borrowed until prefetch_stop */
	const struct file_ops *files;
	const struct remote_options *remote;
	const struct run_name *run;
	const char *work;
	unsigned parallel; /* as transfer_options has it */
	uint64_t have;     /* the step that will be held */
	struct digest128 digest;
	uint64_t poll_s;
	/* that `work` is in: once it is gone nothing more is fetched; NULL: any */
	const struct follow_folder *folder;
};

/* NULL when there is no connection to be had. */
struct prefetch *prefetch_start(const struct prefetch_params *params);
/* Returns when something newer is there and its files have been brought, or when that failed or the
 * folder is gone; frees it. */
void prefetch_finish(struct prefetch *prefetch);
/* Ends it, wherever it is, within about a second; frees it. NULL is fine. */
void prefetch_stop(struct prefetch *prefetch);

#endif
