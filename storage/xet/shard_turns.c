#include "storage/xet/shard_turns.h"

#include <stdlib.h>
#include <time.h>

#include "base/error.h"
#include "base/memory.h"

enum { LARGE_SHARDS_AT_A_TIME = 4, LOOK_AGAIN_NS = 2 * 1000 * 1000 };

struct shard_turns *shard_turns_new(void)
{
	struct shard_turns *const turns = memory_new(sizeof(*turns));
	gate_init(&turns->gate, LARGE_SHARDS_AT_A_TIME);
	return turns;
}

void shard_turns_free(struct shard_turns *turns)
{
	ASSERT(atomic_load(&turns->under_way) == 0);
	gate_release(&turns->gate);
	free(turns);
}

void shard_turns_begin(struct shard_turns *turns)
{
	atomic_fetch_add(&turns->under_way, 1);
}

void shard_turns_end(struct shard_turns *turns)
{
	const unsigned before = atomic_fetch_sub(&turns->under_way, 1);
	ASSERT(before >= 1);
}

void shard_turns_drain(struct shard_turns *turns)
{
	gate_close(&turns->gate);
	while (atomic_load(&turns->under_way) > 0)
		nanosleep(&(struct timespec){.tv_nsec = LOOK_AGAIN_NS}, NULL);
}
