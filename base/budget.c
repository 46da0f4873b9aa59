#include "base/budget.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"

struct budget_share {
	struct budget_share *next;
	uint64_t owner;
	uint64_t used; /* not 0 */
};

void budget_init(struct budget *const budget, const uint64_t limit)
{
	*budget = (struct budget){.limit = limit};
	lock_init(&budget->lock, LOCK_BUDGET);
}

void budget_release(struct budget *const budget)
{
	ASSERT(budget->used == 0 && budget->shares == NULL);
	lock_release(&budget->lock);
}

/* Where the owner's share is linked, or would be. */
static struct budget_share **link_of(struct budget *const budget, const uint64_t owner)
{
	lock_assert_held(&budget->lock);
	struct budget_share **link = &budget->shares;
	while (*link != NULL && (*link)->owner != owner)
		link = &(*link)->next;
	return link;
}

static bool fits(const struct budget *const budget, const struct budget_share *const share, const uint64_t bytes)
{
	if (budget->used == 0)
		return true;
	if (budget->used >= budget->limit || bytes > budget->limit - budget->used)
		return false;
	const uint64_t left = budget->limit - budget->used - bytes;
	return share == NULL || share->used + bytes <= left;
}

bool budget_take(struct budget *const budget, const uint64_t owner, const uint64_t bytes)
{
	if (bytes == 0)
		return true;
	lock_enter(&budget->lock);
	struct budget_share **const link = link_of(budget, owner);
	const bool taken = fits(budget, *link, bytes);
	if (taken && *link == NULL) {
		*link = memory_new(sizeof **link);
		(*link)->owner = owner;
	}
	if (taken) {
		(*link)->used += bytes;
		budget->used += bytes;
	}
	lock_leave(&budget->lock);
	return taken;
}

void budget_give(struct budget *const budget, const uint64_t owner, const uint64_t bytes)
{
	if (bytes == 0)
		return;
	lock_enter(&budget->lock);
	struct budget_share **const link = link_of(budget, owner);
	struct budget_share *const share = *link;
	ASSERT(share != NULL && share->used >= bytes);
	budget->used -= bytes;
	share->used -= bytes;
	if (share->used == 0) {
		*link = share->next;
		free(share);
	}
	lock_leave(&budget->lock);
}

uint64_t budget_used(struct budget *const budget)
{
	lock_enter(&budget->lock);
	const uint64_t used = budget->used;
	lock_leave(&budget->lock);
	return used;
}
