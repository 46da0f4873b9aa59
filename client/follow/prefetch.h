/* A thread that fetches the next steps' files while this step is being made or its --exec runs. It
 * waits for something newer than the step that will be held, downloads the path to it into the work
 * folder, and then looks again every second. The next catch_up finds the files there. Failures are
 * silent: the catch_up asks again and reports them. */
#ifndef CLIENT_FOLLOW_PREFETCH_H
#define CLIENT_FOLLOW_PREFETCH_H

#include "client/follow/follow_folder.h"
#include "client/remote/remote_run.h"
#include "client/transfer/transfer.h"

struct prefetch;

struct prefetch_params { /* copied; what it points to is borrowed until finish or stop */
	const struct file_ops *files;
	const struct remote_options *remote;
	const struct run_name *run;
	const char *work;
	unsigned parallel; /* as transfer_options has it */
	uint64_t have;     /* the step that will be held */
	struct digest128 digest;
	uint64_t poll_s;
	/* the folder that contains `work`: when it is gone, nothing more is fetched; NULL: not
	 * asked */
	const struct follow_folder *folder;
};

/* NULL when no connection can be set up. */
struct prefetch *prefetch_start(const struct prefetch_params *params);
/* Waits up to `ms`. True when something newer is fetched, or when that failed: prefetch_finish then
 * returns soon. */
bool prefetch_wait(struct prefetch *prefetch, int64_t ms);
/* Returns when something newer is published and its files are fetched, or when that failed or the
 * folder is gone. Frees it. */
void prefetch_finish(struct prefetch *prefetch);
/* Ends it within about a second, whatever it is doing, and frees it. NULL is fine. */
void prefetch_stop(struct prefetch *prefetch);

#endif
