/* What `sync` carries over: files up or down, as many as may be over the content-addressed half,
 * the rest by plain requests; and what it removes. */
#ifndef CLIENT_SYNC_SYNC_MOVE_H
#define CLIENT_SYNC_SYNC_MOVE_H

#include "client/local/hash_cache.h"
#include "client/sync/sync_plan.h"
#include "client/transfer/session.h"
#include "client/transfer/xet_access.h"

struct sync_move {
	struct session *session;
	struct remote *remote;
	struct hash_cache *cache;
	struct xet_access *access; /* opened here where it can be had; the owner closes it */
	bool uploads;
	const char *folder;
	struct span bucket;
	struct span prefix; /* empty, or ends in '/' */
	const struct sync_item **items;
	size_t count;
	uint64_t bytes;   /* of the items */
	uint64_t traffic; /* set: what went over the network for them */
	void *owner;
};

typedef void sync_told_fn(void *owner, const struct sync_item *item);

/* "/bucket/prefixname", percent-encoded; heap, the caller's. */
char *sync_move_target(const struct sync_move *move, const char *name);
/* `told` is called for each item that is there now, one at a time. */
int sync_move_all(struct sync_move *move, sync_told_fn *told, struct error *err);
typedef void sync_refused_fn(void *owner, const struct sync_item *item, const struct error *why);
/* Removes at the target; in a dry run only tells what would be. An object that the server refuses
 * to remove stops no other. */
int sync_move_remove(struct sync_move *move, const struct sync_item *const *items, size_t count,
	sync_told_fn *told, sync_refused_fn *refused, struct error *err);

#endif
