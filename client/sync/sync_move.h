/* Moves and removes the files of a `sync`. Files go up or down over the Xet face if possible, and
 * otherwise by plain requests. */
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
	struct xet_access *access; /* opened by sync_move_all if possible; the owner closes it */
	bool uploads;              /* false: downloads */
	bool is_plain;             /* by plain requests alone */
	bool is_dry;               /* removes nothing */
	const char *folder;
	struct span bucket;
	struct span prefix; /* empty, or ends in '/' */
	const struct sync_item **items;
	size_t count;
	uint64_t bytes;   /* of the items */
	uint64_t traffic; /* result: bytes that went over the network for them */
	void *owner;
};

typedef void sync_told_fn(void *owner, const struct sync_item *item);

/* "/bucket/prefixname", percent-encoded. The caller frees it. */
char *sync_move_target(const struct sync_move *move, const char *name);
/* Calls `told` for each item that has arrived, one call at a time. */
int sync_move_all(struct sync_move *move, sync_told_fn *told, struct error *err);
typedef void sync_refused_fn(void *owner, const struct sync_item *item, const struct error *why);
/* Removes the items from the target; in a dry run it only reports what it would remove. An object
 * that the server refuses to remove does not stop the others. */
int sync_move_remove(struct sync_move *move, const struct sync_item *const *items, size_t count,
	sync_told_fn *told, sync_refused_fn *refused, struct error *err);

#endif
