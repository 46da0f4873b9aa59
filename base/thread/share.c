/* Each owner has two lists of holds, oldest first: idle ones, which are displaced first, and busy
 * ones. The owner that holds the most is found by a walk over all owners; this happens only when
 * there is no room. */
#include "base/thread/share.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"

enum { OWNER_SLOTS = 1024 };

struct hold_list {
	struct share_hold *first;
	struct share_hold *last;
};
struct share_owner {              /* has at least one hold */
	struct share_owner *next; /* next in its slot */
	struct share_caller caller;
	uint64_t held;             /* without displaced holds */
	size_t holds;              /* with displaced ones */
	struct hold_list lists[2]; /* index: is_busy */
};

struct share_pool {
	struct share_options options;
	struct lock lock;
	struct share_owner *slots[OWNER_SLOTS]; /* guarded by lock, like all fields below */
	uint64_t held;
	uint64_t strangers;
	uint64_t displaced;
};

static struct share_owner **find_owner(struct share_pool *pool, struct share_caller caller);
static bool is_of(const struct share_owner *owner, struct share_caller caller);
static bool find_room(
	struct share_pool *pool, struct share_caller caller, uint64_t own, uint64_t amount);
static struct share_owner *find_largest(struct share_pool *pool);
static bool strangers_make_room(const struct share_pool *pool);
static bool comes_before(const struct share_pool *pool, struct share_caller caller, uint64_t wanted,
	const struct share_owner *largest);
static void displace_oldest(struct share_pool *pool, struct share_owner *owner);
static void unlink_hold(struct share_hold *hold);
static void remove_held(struct share_pool *pool, struct share_owner *owner, uint64_t amount);
static void count(struct share_pool *pool, enum metric metric, int64_t amount);
static void detach(struct share_pool *pool, struct share_hold *hold);
static void drop_owner_without_holds(struct share_pool *pool, struct share_owner *owner);
static void attach(
	struct share_pool *pool, struct share_hold *hold, struct share_caller caller, bool is_busy);
static struct share_owner *get_owner(struct share_pool *pool, struct share_caller caller);
static void add_held(struct share_pool *pool, struct share_owner *owner, uint64_t amount);
static void link_youngest(struct share_hold *hold);
static void move(
	struct share_pool *pool, struct share_hold *hold, struct share_caller caller, bool is_busy);

struct share_pool *share_pool_new(const struct share_options *options)
{
	struct share_pool *const pool = memory_new(sizeof(*pool));
	pool->options = *options;
	lock_init(&pool->lock, LOCK_SHARE);
	return pool;
}

void share_pool_free(struct share_pool *pool)
{
	if (pool == NULL)
		return;
	ASSERT(pool->held == 0 && pool->displaced == 0);
	lock_release(&pool->lock);
	free(pool);
}

bool share_take(struct share_pool *pool, struct share_hold *hold, struct share_caller caller,
	uint64_t amount)
{
	lock_enter(&pool->lock);
	const struct share_owner *const owner = *find_owner(pool, caller);
	const bool taken = !hold->is_displaced &&
		find_room(pool, caller, owner != NULL ? owner->held : 0, amount);
	if (taken) {
		const uint64_t before = hold->amount;
		if (hold->owner != NULL)
			detach(pool, hold);
		hold->amount = before + amount;
		attach(pool, hold, caller, hold->is_busy);
	} else {
		count(pool, pool->options.refused, 1);
	}
	lock_leave(&pool->lock);
	return taken;
}

void share_give(struct share_pool *pool, struct share_hold *hold)
{
	lock_enter(&pool->lock);
	if (hold->owner != NULL)
		detach(pool, hold);
	hold->amount = 0;
	lock_leave(&pool->lock);
}

bool share_make_room(struct share_pool *pool)
{
	lock_enter(&pool->lock);
	struct share_owner *const largest = find_largest(pool);
	if (largest != NULL)
		displace_oldest(pool, largest);
	lock_leave(&pool->lock);
	return largest != NULL;
}

void share_count(struct share_pool *pool, struct share_hold *hold, struct share_caller caller,
	uint64_t amount)
{
	lock_enter(&pool->lock);
	ASSERT(hold->owner == NULL);
	hold->amount = amount;
	attach(pool, hold, caller, false);
	lock_leave(&pool->lock);
}

void share_move(
	struct share_pool *pool, struct share_hold *hold, struct share_caller caller, bool is_busy)
{
	lock_enter(&pool->lock);
	if (hold->owner != NULL && !hold->is_displaced)
		move(pool, hold, caller, is_busy);
	lock_leave(&pool->lock);
}

bool share_is_displaced(struct share_pool *pool, const struct share_hold *hold)
{
	lock_enter(&pool->lock);
	const bool is_displaced = hold->is_displaced;
	lock_leave(&pool->lock);
	return is_displaced;
}

uint64_t share_held(struct share_pool *pool)
{
	lock_enter(&pool->lock);
	const uint64_t held = pool->held;
	lock_leave(&pool->lock);
	return held;
}

uint64_t share_displaced(struct share_pool *pool)
{
	lock_enter(&pool->lock);
	const uint64_t displaced = pool->displaced;
	lock_leave(&pool->lock);
	return displaced;
}

static struct share_owner **find_owner(struct share_pool *pool, struct share_caller caller)
{
	struct share_owner **link = &pool->slots[caller.id % OWNER_SLOTS];
	while (*link != NULL && !is_of(*link, caller))
		link = &(*link)->next;
	return link;
}

static bool is_of(const struct share_owner *owner, struct share_caller caller)
{
	return owner->caller.id == caller.id && owner->caller.rank == caller.rank;
}

/* Makes room of `amount` for a caller that already holds `own`. False when there is none; others
 * may have been displaced in vain. Displaced amounts are still in use until they are given back,
 * and together may be as much as the limit again. */
static bool find_room(
	struct share_pool *pool, struct share_caller caller, uint64_t own, uint64_t amount)
{
	const uint64_t limit =
		pool->options.limit + (caller.rank == SHARE_ROOT ? pool->options.reserve : 0);
	while (amount > limit || pool->held > limit - amount) {
		struct share_owner *const largest = find_largest(pool);
		if (pool->displaced >= pool->options.limit)
			return false;
		if (largest == NULL || !comes_before(pool, caller, own + amount, largest))
			return false;
		displace_oldest(pool, largest);
	}
	return true;
}

/* The owner that must make room; NULL when nobody may be displaced. */
static struct share_owner *find_largest(struct share_pool *pool)
{
	const enum share_rank most = strangers_make_room(pool) ? SHARE_STRANGER : SHARE_KEY;
	struct share_owner *largest = NULL;
	for (size_t i = 0; i < OWNER_SLOTS; i++)
		for (struct share_owner *owner = pool->slots[i]; owner != NULL;
			owner = owner->next) {
			const bool may_be = owner->held > 0 && owner->caller.rank <= most;
			if (may_be && (largest == NULL || owner->held > largest->held))
				largest = owner;
		}
	return largest;
}

static bool strangers_make_room(const struct share_pool *pool)
{
	return pool->strangers > pool->options.strangers;
}

/* Whether a caller that would hold `wanted` in total may displace the owner that holds the most. */
static bool comes_before(const struct share_pool *pool, struct share_caller caller, uint64_t wanted,
	const struct share_owner *largest)
{
	if (caller.rank == SHARE_ROOT || (caller.rank == SHARE_KEY && strangers_make_room(pool)))
		return true;
	return largest->held > wanted;
}

static void displace_oldest(struct share_pool *pool, struct share_owner *owner)
{
	struct share_hold *const hold = owner->lists[owner->lists[false].first == NULL].first;
	ASSERT(hold != NULL && hold->displace != NULL && !hold->is_displaced);
	unlink_hold(hold);
	remove_held(pool, owner, hold->amount);
	pool->displaced += hold->amount;
	hold->is_displaced = true;
	count(pool, pool->options.displaced, 1);
	hold->displace(hold);
}

static void unlink_hold(struct share_hold *hold)
{
	struct hold_list *const list = &hold->owner->lists[hold->is_busy];
	*(hold->previous != NULL ? &hold->previous->next : &list->first) = hold->next;
	*(hold->next != NULL ? &hold->next->previous : &list->last) = hold->previous;
}

static void remove_held(struct share_pool *pool, struct share_owner *owner, uint64_t amount)
{
	ASSERT(owner->held >= amount && pool->held >= amount);
	owner->held -= amount;
	pool->held -= amount;
	count(pool, pool->options.held, -(int64_t)amount);
	if (owner->caller.rank == SHARE_STRANGER) {
		ASSERT(pool->strangers >= amount);
		pool->strangers -= amount;
	}
}

static void count(struct share_pool *pool, enum metric metric, int64_t amount)
{
	if (pool->options.metrics != NULL && metric != METRIC_COUNT)
		metrics_add(pool->options.metrics, metric, amount);
}

static void detach(struct share_pool *pool, struct share_hold *hold)
{
	struct share_owner *const owner = hold->owner;
	ASSERT(owner != NULL && owner->holds > 0);
	if (hold->is_displaced) {
		ASSERT(pool->displaced >= hold->amount);
		pool->displaced -= hold->amount;
	} else {
		unlink_hold(hold);
		remove_held(pool, owner, hold->amount);
	}
	owner->holds--;
	hold->owner = NULL;
	drop_owner_without_holds(pool, owner);
}

static void drop_owner_without_holds(struct share_pool *pool, struct share_owner *owner)
{
	if (owner->holds > 0)
		return;
	struct share_owner **const link = find_owner(pool, owner->caller);
	ASSERT(*link == owner && owner->held == 0);
	*link = owner->next;
	free(owner);
}

static void attach(
	struct share_pool *pool, struct share_hold *hold, struct share_caller caller, bool is_busy)
{
	ASSERT(hold->owner == NULL && !hold->is_displaced);
	hold->owner = get_owner(pool, caller);
	hold->owner->holds++;
	hold->is_busy = is_busy;
	add_held(pool, hold->owner, hold->amount);
	link_youngest(hold);
}

static struct share_owner *get_owner(struct share_pool *pool, struct share_caller caller)
{
	struct share_owner **const link = find_owner(pool, caller);
	if (*link == NULL) {
		*link = memory_new(sizeof(**link));
		(*link)->caller = caller;
	}
	return *link;
}

static void add_held(struct share_pool *pool, struct share_owner *owner, uint64_t amount)
{
	owner->held += amount;
	pool->held += amount;
	count(pool, pool->options.held, (int64_t)amount);
	if (owner->caller.rank == SHARE_STRANGER)
		pool->strangers += amount;
}

static void link_youngest(struct share_hold *hold)
{
	struct hold_list *const list = &hold->owner->lists[hold->is_busy];
	hold->next = NULL;
	hold->previous = list->last;
	*(list->last != NULL ? &list->last->next : &list->first) = hold;
	list->last = hold;
}

static void move(
	struct share_pool *pool, struct share_hold *hold, struct share_caller caller, bool is_busy)
{
	if (is_of(hold->owner, caller)) {
		unlink_hold(hold);
		hold->is_busy = is_busy;
		link_youngest(hold);
	} else {
		detach(pool, hold);
		attach(pool, hold, caller, is_busy);
	}
}
