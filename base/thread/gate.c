#include "base/thread/gate.h"

#include <stddef.h>

#include "base/error.h"

void gate_init(struct gate *gate, unsigned limit)
{
	*gate = (struct gate){.limit = limit};
	ASSERT(limit >= 1);
	lock_init(&gate->lock, LOCK_GATE);
}

void gate_release(struct gate *gate)
{
	ASSERT(gate->inside == 0 && gate->first == NULL);
	lock_release(&gate->lock);
}

void gate_enter(struct gate *gate, struct gate_visitor *visitor)
{
	ASSERT(visitor->pass != NULL);
	lock_enter(&gate->lock);
	const bool is_closed = gate->is_closed;
	const bool passes = !is_closed && gate->inside < gate->limit;
	gate->inside += passes;
	visitor->next = NULL;
	if (!passes && !is_closed) {
		*(gate->first == NULL ? &gate->first : &gate->last->next) = visitor;
		gate->last = visitor;
	}
	lock_leave(&gate->lock);
	if (passes)
		visitor->pass(visitor);
	else if (is_closed)
		visitor->turn_away(visitor);
}

/* The first visitor that waits takes over the place. */
void gate_leave(struct gate *gate)
{
	lock_enter(&gate->lock);
	ASSERT(gate->inside > 0);
	struct gate_visitor *const next = gate->first;
	if (next == NULL)
		gate->inside--;
	else
		gate->first = next->next;
	lock_leave(&gate->lock);
	if (next != NULL)
		next->pass(next);
}

bool gate_withdraw(struct gate *gate, struct gate_visitor *visitor)
{
	struct gate_visitor *before = NULL;
	lock_enter(&gate->lock);
	struct gate_visitor **link = &gate->first;
	while (*link != NULL && *link != visitor) {
		before = *link;
		link = &before->next;
	}
	const bool waited = *link != NULL;
	if (waited)
		*link = visitor->next;
	if (waited && gate->last == visitor)
		gate->last = before;
	lock_leave(&gate->lock);
	return waited;
}

void gate_close(struct gate *gate)
{
	lock_enter(&gate->lock);
	struct gate_visitor *waiting = gate->first;
	gate->is_closed = true;
	gate->first = NULL;
	lock_leave(&gate->lock);
	while (waiting != NULL) {
		struct gate_visitor *const visitor = waiting;
		waiting = visitor->next; /* the visitor may be freed by the call */
		visitor->turn_away(visitor);
	}
}

bool gate_is_closed(struct gate *gate)
{
	lock_enter(&gate->lock);
	const bool is_closed = gate->is_closed;
	lock_leave(&gate->lock);
	return is_closed;
}
