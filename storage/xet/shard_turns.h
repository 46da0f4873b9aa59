/* The gate that limits how many large shards are checked at a time, and the count of all shards
 * under way. A store that closes turns the large ones away and waits for the rest. Any thread.
 * Internal to storage. */
#ifndef STORAGE_XET_SHARD_TURNS_H
#define STORAGE_XET_SHARD_TURNS_H

#include <stdatomic.h>

#include "base/thread/gate.h"

struct shard_turns {
	struct gate gate;           /* for the checks of large shards */
	_Atomic unsigned under_way; /* shards of all sizes */
};
struct shard_turns *shard_turns_new(void);
void shard_turns_free(struct shard_turns *turns); /* no shard may be under way */

/* Counts a shard as under way, from begin to end. */
void shard_turns_begin(struct shard_turns *turns);
void shard_turns_end(struct shard_turns *turns);
/* Closes the gate and waits for the shards that are under way. A shard whose exchange is gone was
 * given up, and ends at its next slice or change. The wake of the last shard may come after this
 * returns, on a helper or the committer. */
void shard_turns_drain(struct shard_turns *turns);

#endif
