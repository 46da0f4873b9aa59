/* Lets a limited number of visitors in at a time. Later visitors wait without a thread, in the
 * order of their arrival. A closed gate lets nobody in. Any thread. Internal to storage. */
#ifndef BASE_THREAD_GATE_H
#define BASE_THREAD_GATE_H

#include "base/thread/lock.h"

/* Embed it in the object that waits. It must stay in place until it has passed or was turned
 * away. */
struct gate_visitor {
	void (*pass)(struct gate_visitor *visitor); /* called without a lock */
	/* Called without a lock. A visitor that was turned away must not call gate_leave. */
	void (*turn_away)(struct gate_visitor *visitor);
	struct gate_visitor *next;
};
struct gate {
	struct lock lock;
	unsigned inside;
	unsigned limit;
	bool is_closed;
	struct gate_visitor *first;
	struct gate_visitor *last;
};
void gate_init(struct gate *gate, unsigned limit);
void gate_release(struct gate *gate); /* nobody may be inside or wait */
/* Calls `pass` or `turn_away` once: within this call, or later from the call that leaves or closes
 * the gate. */
void gate_enter(struct gate *gate, struct gate_visitor *visitor);
void gate_leave(struct gate *gate);
/* Takes a waiting visitor out: true, and neither function will be called. False when the visitor
 * does not wait any more. */
bool gate_withdraw(struct gate *gate, struct gate_visitor *visitor);
/* Turns away all that wait now or come later. Visitors inside may look at gate_is_closed and leave
 * early. A second call does nothing. */
void gate_close(struct gate *gate);
bool gate_is_closed(struct gate *gate);

#endif
