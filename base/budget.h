/* So many bytes, at most, for something that many callers make at a time and that stays for as long as slow peers please. Callers are told apart by a
 * number, say a hash of their name (two of one number count as one), so that none of them leaves nothing to the others. Internally locked; any
 * thread. */
#ifndef BASE_BUDGET_H
#define BASE_BUDGET_H

#include "base/lock.h"

struct budget_share;
struct budget {
	struct lock lock;
	uint64_t limit;
	uint64_t used;               /* guarded by lock, and what follows */
	struct budget_share *shares; /* of who has some */
};
void budget_init(struct budget *budget, uint64_t limit);
void budget_release(struct budget *budget); /* all was given back */
/* False when there is no room for them beside what all have; or when `owner` has some already, and would have more than is left for others then. So one
 * alone gets half, and n that take what they can get some part each. The first who comes while nobody has any may have more than the limit. */
bool budget_take(struct budget *budget, uint64_t owner, uint64_t bytes);
void budget_give(struct budget *budget, uint64_t owner, uint64_t bytes); /* what was taken */
uint64_t budget_used(struct budget *budget);

#endif
