/* So many at a time; who comes later waits without a thread, and the first that came is the next. A
 * closed gate lets nobody in. Any thread. Internal to storage. */
#ifndef BASE_THREAD_GATE_H
#define BASE_THREAD_GATE_H

#include "base/thread/lock.h"

struct gate_visitor { /* embed in whoever waits; stays put until it has passed or was turned away */
	void (*pass)(struct gate_visitor *visitor); /* no lock held */
	/* the same; whoever is turned away does not leave */
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
void gate_release(struct gate *gate); /* nobody is inside or waits */
/* `pass` or `turn_away` is called once: within this call, or by who leaves or closes. */
void gate_enter(struct gate *gate, struct gate_visitor *visitor);
void gate_leave(struct gate *gate);
/* Who waits still does so no more: true, and neither of the two will be called. */
bool gate_withdraw(struct gate *gate, struct gate_visitor *visitor);
/* Turns away who waits, and whoever comes later; who is inside may look whether he wants to stay.
 * Again: nothing. */
void gate_close(struct gate *gate);
bool gate_is_closed(struct gate *gate);

#endif
