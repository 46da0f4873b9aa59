/* The requests of `deltabucket watch`: RunStatus, GetStep of a new head, ListReplicas, and
 * LatestStep as a pause that a new step ends. Older servers have all of them. */
#ifndef CLIENT_WATCH_WATCH_FETCH_H
#define CLIENT_WATCH_WATCH_FETCH_H

#include "client/remote/remote.h"
#include "client/remote/run_name.h"
#include "client/watch/watch_model.h"

/* The manifest of the head is fetched unless `before` has it, proven. `before` may be zeroed. */
int watch_fetch_run(struct remote *remote, const struct run_name *run,
	const struct watch_run *before, struct watch_run *out, struct error *err);
/* The counts, and with `lists` all workers, page by page. A token that may not see them is no
 * failure. Release `out` in every case. */
int watch_fetch_fleet(struct remote *remote, const struct run_name *run, bool lists,
	struct watch_fleet *out, struct error *err);
/* Notes when the steps up to the head were published, in place of what was noted. What cannot be
 * had is left out. */
void watch_fetch_history(struct remote *remote, const struct run_name *run, uint64_t head,
	struct watch_model *model);
/* Waits up to `seconds` for a step above the head of `known`; at once when there is one. */
int watch_fetch_pause(struct remote *remote, const struct run_name *run,
	const struct watch_run *known, uint64_t seconds, struct error *err);

#endif
