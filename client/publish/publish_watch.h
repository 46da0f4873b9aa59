/* `deltabucket publish --watch`: publishes what a trainer leaves in a folder. A sub-folder whose
 * name ends in a number and that holds the marker is a finished checkpoint. Checkpoints become
 * steps in the order of these numbers, labelled with the sub-folders' names. The labels are also
 * the memory: a checkpoint that the run already has is not published again, whichever machine
 * asks. */
#ifndef CLIENT_PUBLISH_PUBLISH_WATCH_H
#define CLIENT_PUBLISH_PUBLISH_WATCH_H

#include "client/publish/publisher.h"

/* Publishes one checkpoint and prints that it did. */
typedef int publish_fn(
	struct session *session, const struct publish_order *order, struct error *err);

struct publish_watch_params {
	const char *folder; /* need not exist yet */
	const char *marker; /* a file's name */
	const char *run;
	struct publish_order order; /* checkpoint, label and marker are filled in */
	publish_fn *publish;
};

/* Keeps other publishers out of the state folder meanwhile: -1 with busy when one is there. Returns
 * 0 after SIGTERM, and -1 after SIGINT or when no further try could help. Waits while the server is
 * away or the disk is full. Skips a sub-folder that is malformed or disappears, and one that is
 * behind a step that another publisher has brought meanwhile. */
int publish_watch(
	struct session *session, const struct publish_watch_params *params, struct error *err);

#endif
