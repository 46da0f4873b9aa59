/* A bounded resource that all callers share: connections, waits, streams, bytes of request bodies.
 * While there is room, every caller gets what it asks for. When there is none, the owner that holds
 * the most makes room: its oldest hold is displaced. A caller that would itself be that owner is
 * refused. So n owners that want everything end with one n-th each, and a single owner may have
 * everything.
 *
 * Owners are told apart by a number: a hash of the key's id or, without a key, of the address. Two
 * owners with the same number count as one. Owners without a key are strangers. Their number is
 * unlimited, so when there is no room and strangers together hold more than a given part, room is
 * made among them. The root key has a reserve beyond the limit and is never displaced. Internally
 * locked; any thread. */
#ifndef BASE_THREAD_SHARE_H
#define BASE_THREAD_SHARE_H

#include "base/metrics.h"
#include "base/thread/lock.h"

enum share_rank { SHARE_STRANGER, SHARE_KEY, SHARE_ROOT };
struct share_caller {
	uint64_t id;
	enum share_rank rank;
};

struct share_owner;
/* Embed it in the object that holds, zeroed and with `displace` set: it then holds nothing. */
struct share_hold {
	/* Makes sure that the hold is given back soon. Called once for a hold, from any thread,
	 * with the pool's lock held: the hold is still there, and must not be given back within
	 * this call. */
	void (*displace)(struct share_hold *hold);
	struct share_owner *owner; /* owned by the pool, like all fields below */
	struct share_hold *next;
	struct share_hold *previous;
	uint64_t amount;
	bool is_busy;
	bool is_displaced;
};

struct share_options {
	uint64_t limit;
	uint64_t reserve;        /* for the root key, beyond the limit */
	uint64_t strangers;      /* how much strangers together keep when there is no room */
	struct metrics *metrics; /* NULL: nothing is counted */
	enum metric held;        /* the value of share_held; METRIC_COUNT: not shown */
	enum metric refused;
	enum metric displaced;
};
struct share_pool;
struct share_pool *share_pool_new(const struct share_options *options);
void share_pool_free(struct share_pool *pool); /* everything must be given back; NULL is fine */

/* Adds `amount` to the hold, which becomes the caller's youngest. Returns false and changes nothing
 * in the hold when there is no room for the caller, when as much as the limit is displaced and not
 * given back yet, or when the hold is displaced. All amounts of a hold belong to one caller. */
bool share_take(struct share_pool *pool, struct share_hold *hold, struct share_caller caller,
	uint64_t amount);
/* Gives back the whole hold. Does nothing for a hold that has nothing. A displaced hold stays
 * displaced. */
void share_give(struct share_pool *pool, struct share_hold *hold);

/* For resources that exist before their owner is known (connections): the caller makes room first
 * and counts afterwards. */
/* Displaces a hold of the owner that holds the most, an idle one if there is one. False when nobody
 * has anything to give. */
bool share_make_room(struct share_pool *pool);
/* Takes `amount` regardless of the limit. */
void share_count(struct share_pool *pool, struct share_hold *hold, struct share_caller caller,
	uint64_t amount);
/* Gives the hold to this caller, as its youngest. */
void share_move(
	struct share_pool *pool, struct share_hold *hold, struct share_caller caller, bool is_busy);

bool share_is_displaced(struct share_pool *pool, const struct share_hold *hold);
uint64_t share_held(struct share_pool *pool);      /* by all owners, without displaced holds */
uint64_t share_displaced(struct share_pool *pool); /* and not given back yet */

#endif
