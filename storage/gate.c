#include "storage/gate.h"

#include <stddef.h>

#include "base/error.h"

void gate_init(struct gate *const gate, const unsigned limit)
{
	*gate = (struct gate){.limit = limit};
	lock_init(&gate->lock, LOCK_GATE);
}

void gate_release(struct gate *const gate)
{
	ASSERT(gate->inside == 0 && gate->first == NULL);
	lock_release(&gate->lock);
}

void gate_enter(struct gate *const gate, struct gate_visitor *const visitor)
{
	lock_enter(&gate->lock);
	const bool passes = gate->inside < gate->limit;
	gate->inside += passes;
	visitor->next = NULL;
	if (!passes) {
		*(gate->first == NULL ? &gate->first : &gate->last->next) = visitor;
		gate->last = visitor;
	}
	lock_leave(&gate->lock);
	if (passes)
		visitor->pass(visitor);
}

/* Whoever waits takes the place over. */
void gate_leave(struct gate *const gate)
{
	lock_enter(&gate->lock);
	struct gate_visitor *const next = gate->first;
	if (next == NULL)
		gate->inside--;
	else
		gate->first = next->next;
	lock_leave(&gate->lock);
	if (next != NULL)
		next->pass(next);
}
