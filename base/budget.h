/* So many bytes, at most, for something that many callers make at a time and that stays for as long as slow peers please. Lock-free; any thread. */
#ifndef BASE_BUDGET_H
#define BASE_BUDGET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct budget {
	_Atomic uint64_t used;
	uint64_t limit;
};
/* False when there is no room for them beside what others have; who is alone may have more than the limit. */
bool budget_take(struct budget *budget, uint64_t bytes);
void budget_give(struct budget *budget, uint64_t bytes); /* what was taken */

#endif
