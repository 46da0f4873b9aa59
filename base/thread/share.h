/* A bounded thing that all callers take from: connections, waits, streams, bytes of request bodies.
 * While there is room, everybody gets what they ask for. When there is none, room is made at the
 * cost of the owner that holds the most: its oldest hold is displaced. A caller that would itself
 * be that owner is refused. So n owners that want all there is end with an n-th each, and one alone
 * may have everything.
 *
 * Owners are told apart by a number: a hash of the key's id or, without a key, of the address; two
 * of one number count as one. Those without a key are strangers. There is no end to them, so once
 * there is no room and strangers together hold more than a given part, room is made among them. The
 * root key finds a reserve beyond the limit and is never displaced. Internally locked; any
 * thread. */
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
struct share_hold { /* embed in whatever holds; zeroed, with `displace` set: holds nothing yet */
	/* Sees to it that the hold is given back soon. From any thread, the pool's lock held: so
	 * the hold is still there, and must not be given back within this call. Once for a hold. */
	void (*displace)(struct share_hold *hold);
	struct share_owner *owner; /* the rest is the pool's */
	struct share_hold *next;
	struct share_hold *previous;
	uint64_t amount;
	bool is_busy;
	bool is_displaced;
};

struct share_options {
	uint64_t limit;
	uint64_t reserve;        /* for the root key, beyond the limit */
	uint64_t strangers;      /* what strangers together keep when there is no room */
	struct metrics *metrics; /* NULL: nothing is counted */
	enum metric held;        /* what share_held gives; METRIC_COUNT: not shown */
	enum metric refused;
	enum metric displaced;
};
struct share_pool;
struct share_pool *share_pool_new(const struct share_options *options);
void share_pool_free(struct share_pool *pool); /* all was given back; NULL is fine */

/* Adds `amount` to the hold, which becomes the caller's youngest. False, and nothing changed: there
 * is no room for the caller, as much as the limit was displaced and is still there, or the hold was
 * displaced. All amounts of a hold are one caller's. */
bool share_take(struct share_pool *pool, struct share_hold *hold, struct share_caller caller,
	uint64_t amount);
/* Gives all of it back. A hold that has nothing is left alone; one that was displaced stays so. */
void share_give(struct share_pool *pool, struct share_hold *hold);

/* For what is there before anybody knows whose it is (connections): the caller makes room first and
 * counts then. */
/* Displaces somebody's hold: of an owner's, those that are not busy first. False when nobody has
 * any left to give. */
bool share_make_room(struct share_pool *pool);
/* Takes `amount`, whatever the limit. */
void share_count(struct share_pool *pool, struct share_hold *hold, struct share_caller caller,
	uint64_t amount);
/* The hold is this caller's from now on, and its youngest. */
void share_move(
	struct share_pool *pool, struct share_hold *hold, struct share_caller caller, bool is_busy);

bool share_is_displaced(struct share_pool *pool, const struct share_hold *hold);
uint64_t share_held(struct share_pool *pool);      /* by all, what is displaced left out */
uint64_t share_displaced(struct share_pool *pool); /* not given back yet */

#endif
