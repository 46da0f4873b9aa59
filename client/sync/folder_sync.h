/* A `sync`: makes a folder like a prefix of a bucket, or a prefix like a folder. Only what differs
 * moves. Without `deletes` nothing is removed, and with it last of all. One thread makes the call;
 * it starts others. */
#ifndef CLIENT_SYNC_FOLDER_SYNC_H
#define CLIENT_SYNC_FOLDER_SYNC_H

#include "client/sync/sync_plan.h"
#include "client/transfer/session.h"

/* What happened to one file, and in a dry run what would happen to it. */
enum folder_sync_event { FOLDER_SYNC_MOVED, FOLDER_SYNC_REMOVED, FOLDER_SYNC_REFUSED };
/* `why` is that of a removal that the server refuses, otherwise NULL. One call at a time, from any
 * thread. */
typedef void folder_sync_told_fn(void *owner, enum folder_sync_event event,
	const struct sync_item *item, const struct error *why);

struct folder_sync_params {
	struct session *session;
	bool uploads;  /* false: downloads */
	bool is_plain; /* by plain requests alone */
	bool is_dry;
	bool deletes; /* what the source lacks goes from the target */
	bool creates_bucket;
	const char *folder;
	struct object_name place; /* the bucket, and the prefix with or without a slash behind it */
	folder_sync_told_fn *told;
	void *owner;
};

struct folder_sync_counts {
	size_t files;     /* at the source */
	size_t moved;     /* in a dry run: would be */
	uint64_t bytes;   /* of those */
	uint64_t traffic; /* bytes that went over the network for them */
	size_t removed;
	size_t refused;       /* removals that the server refused */
	struct error refusal; /* the first one */
};

/* Succeeds also when removals were refused: see folder_sync_judge. not_found when `deletes` would
 * empty the target because there is nothing at the source; invalid when a key cannot be the name of
 * a file below the folder. Then nothing has been done. */
int folder_sync_run(
	const struct folder_sync_params *params, struct folder_sync_counts *out, struct error *err);
/* -1 with the first refusal when there was one. */
int folder_sync_judge(const struct folder_sync_counts *counts, bool is_dry, struct error *err);

#endif
