/* Removes objects of one bucket, independently of each other: an object that the server refuses to
 * remove does not stop the others, and each result is reported. Keys that the Hub face accepts are
 * removed in batches, the others with one DELETE each. One thread. */
#ifndef CLIENT_TRANSFER_REMOVAL_H
#define CLIENT_TRANSFER_REMOVAL_H

#include "client/remote/remote.h"

struct removal {
	struct remote *remote;
	struct span bucket;
	bool is_dry; /* removes nothing, and only asks what the server would refuse */
	/* keys[number] was removed, or would be */
	void (*removed)(void *owner, size_t number);
	void (*refused)(void *owner, size_t number, const struct error *why);
	void *owner;
};

/* -1 when a failure also stops the rest; the results that were reported before stay true. */
int removal_run(
	const struct removal *removal, const struct span *keys, size_t count, struct error *err);

#endif
