/* `deltabucket publish --watch`: publishes what a trainer leaves in a folder. Each sub-folder whose
 * name ends in a number and that holds the marker is a finished checkpoint; they become steps in
 * the order of these numbers, labelled with their names. The labels are also the memory: what the
 * run has already is not published again, whichever machine asks. */
#ifndef CLIENT_PUBLISH_PUBLISH_WATCH_H
#define CLIENT_PUBLISH_PUBLISH_WATCH_H

#include "client/publish/publisher.h"

/* Publishes one checkpoint and says so. */
typedef int publish_fn(
	struct session *session, const struct publish_order *order, struct error *err);

struct publish_watch_params {
	const char *folder; /* need not be there yet */
	const char *marker; /* a file's name */
	const char *run;
	struct publish_order order; /* checkpoint, label and marker are filled in */
	publish_fn *publish;
};

/* Ends with 0 after SIGTERM, with -1 after SIGINT and when no further try could help. A server
 * that is away and a full disk are waited for; a sub-folder that is malformed or goes is passed
 * over. */
int publish_watch(
	struct session *session, const struct publish_watch_params *params, struct error *err);

#endif
