/* Removes objects of one bucket, each for itself: one that the server refuses stops no other, and
 * every one is told. What the Hub half takes goes in batches, the rest by a DELETE each. One
 * thread. */
#ifndef CLIENT_TRANSFER_REMOVAL_H
#define CLIENT_TRANSFER_REMOVAL_H

#include "client/remote/remote.h"

struct removal {
	struct remote *remote;
	struct span bucket;
	bool is_dry;                                 /* only asks what would be refused */
	void (*removed)(void *owner, size_t number); /* keys[number] is gone, or would be */
	void (*refused)(void *owner, size_t number, const struct error *why);
	void *owner;
};

/* -1 when the rest cannot go on either; what was told before stands. */
int removal_run(
	const struct removal *removal, const struct span *keys, size_t count, struct error *err);

#endif
