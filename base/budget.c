#include "base/budget.h"

bool budget_take(struct budget *const budget, const uint64_t bytes)
{
	uint64_t used = atomic_load(&budget->used);
	do {
		if (used > 0 && (used >= budget->limit || bytes > budget->limit - used))
			return false;
	} while (!atomic_compare_exchange_weak(&budget->used, &used, used + bytes));
	return true;
}

void budget_give(struct budget *const budget, const uint64_t bytes)
{
	atomic_fetch_sub(&budget->used, bytes);
}
