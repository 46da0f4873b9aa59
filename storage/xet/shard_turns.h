/* How many checks of large shards run at a time, and how many shards are under way at all: a store
 * that closes turns away the large ones and waits for the rest. Any thread. Internal to storage. */
#ifndef STORAGE_XET_SHARD_TURNS_H
#define STORAGE_XET_SHARD_TURNS_H

#include <stdatomic.h>

#include "base/thread/gate.h"

struct shard_turns {
	struct gate gate;           /* for checks of large shards */
	_Atomic unsigned under_way; /* shards, whoever may wait for them */
};
struct shard_turns *shard_turns_new(void);
void shard_turns_free(struct shard_turns *turns); /* none is under way */

/* A shard is under way; it is no more. */
void shard_turns_begin(struct shard_turns *turns);
void shard_turns_end(struct shard_turns *turns);
/* Closes the gate and waits for the shards that are under way. Their exchanges may be gone; then
 * they were given up, and end at their next slice or change. The wake of the last may follow, on a
 * helper or the committer. */
void shard_turns_drain(struct shard_turns *turns);

#endif
