/* Each counter is one time: the moment from which on nothing is owed (generic cell rate algorithm).
 * A guess moves it on by a pause, and is refused when it lies a whole burst ahead. A counter is
 * found in one of the places that its hash allows. */
#include "api/auth/guess_limit.h"

#include <stdlib.h>

#include "base/digest/xxh3.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/thread/lock.h"

enum { SETS = 512, WAYS = 8, ADDRESS_FACTOR = 6 };

struct counter {
	uint64_t id; /* 0: free */
	int64_t free_ms;
};

struct guess_limit {
	const struct clock_source *clock;
	uint64_t seed; /* so that nobody can choose which counters share a set */
	struct lock lock;
	struct counter counters[SETS][WAYS]; /* guarded by lock */
};

struct pair {
	struct counter *key;
	struct counter *address;
};

static struct pair find_pair(struct guess_limit *limit, uint64_t peer, struct span key_id);
static struct counter *find_counter(struct guess_limit *limit, uint64_t hash);
static int64_t ahead_ms(const struct counter *counter, int64_t now_ms, int64_t pause_ms);
static void move(struct counter *counter, int64_t now_ms, int64_t by_ms);

struct guess_limit *guess_limit_new(const struct clock_source *clock)
{
	struct guess_limit *const limit = memory_new(sizeof(*limit));
	limit->clock = clock;
	random_bytes(&limit->seed, sizeof(limit->seed));
	lock_init(&limit->lock, LOCK_GUESSES);
	return limit;
}

void guess_limit_free(struct guess_limit *limit)
{
	if (limit == NULL)
		return;
	lock_release(&limit->lock);
	free(limit);
}

unsigned guess_limit_take(struct guess_limit *limit, uint64_t peer, struct span key_id)
{
	if (limit == NULL)
		return 0;
	const int64_t now_ms = limit->clock->monotonic_ms(limit->clock);
	lock_enter(&limit->lock);
	const struct pair pair = find_pair(limit, peer, key_id);
	const int64_t by_key = ahead_ms(pair.key, now_ms, GUESS_PAUSE_MS);
	const int64_t by_address = ahead_ms(pair.address, now_ms, GUESS_PAUSE_MS / ADDRESS_FACTOR);
	const int64_t wait_ms = by_key > by_address ? by_key : by_address;
	if (wait_ms <= 0) {
		move(pair.key, now_ms, GUESS_PAUSE_MS);
		move(pair.address, now_ms, GUESS_PAUSE_MS / ADDRESS_FACTOR);
	}
	lock_leave(&limit->lock);
	return wait_ms <= 0 ? 0 : (unsigned)(wait_ms / 1000 + 1);
}

void guess_limit_give(struct guess_limit *limit, uint64_t peer, struct span key_id)
{
	if (limit == NULL)
		return;
	lock_enter(&limit->lock);
	const struct pair pair = find_pair(limit, peer, key_id);
	pair.key->free_ms -= GUESS_PAUSE_MS;
	pair.address->free_ms -= GUESS_PAUSE_MS / ADDRESS_FACTOR;
	lock_leave(&limit->lock);
}

static struct pair find_pair(struct guess_limit *limit, uint64_t peer, struct span key_id)
{
	const uint64_t address = xxh3_64_seeded(span_of(&peer, sizeof(peer)), limit->seed);
	const uint64_t key = xxh3_64_seeded(key_id, address + 1);
	struct counter *const found = find_counter(limit, address);
	return (struct pair){find_counter(limit, key), found};
}

static struct counter *find_counter(struct guess_limit *limit, uint64_t hash)
{
	struct counter *const set = limit->counters[hash % SETS];
	struct counter *place = &set[0];
	const uint64_t id = hash | 1; /* the lowest bits chose the set */
	for (size_t i = 0; i < WAYS; i++) {
		if (set[i].id == id)
			return &set[i];
		if (set[i].free_ms < place->free_ms)
			place = &set[i];
	}
	*place = (struct counter){.id = id};
	return place;
}

/* How much longer than a burst allows; 0 and below: not longer. */
static int64_t ahead_ms(const struct counter *counter, int64_t now_ms, int64_t pause_ms)
{
	const int64_t burst =
		pause_ms == GUESS_PAUSE_MS ? GUESS_BURST : GUESS_BURST * ADDRESS_FACTOR;
	return counter->free_ms - now_ms - (burst - 1) * pause_ms;
}

static void move(struct counter *counter, int64_t now_ms, int64_t by_ms)
{
	counter->free_ms = (counter->free_ms > now_ms ? counter->free_ms : now_ms) + by_ms;
}
