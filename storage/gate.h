/* So many at a time; who comes later waits without a thread, and the first that came is the next. Any thread. Internal to storage. */
#ifndef STORAGE_GATE_H
#define STORAGE_GATE_H

#include "base/lock.h"

struct gate_visitor { /* embed in whoever waits; stays put until it has passed */
	void (*pass)(struct gate_visitor *visitor); /* no lock held */
	struct gate_visitor *next;
};
struct gate {
	struct lock lock;
	unsigned inside;
	unsigned limit;
	struct gate_visitor *first;
	struct gate_visitor *last;
};
void gate_init(struct gate *gate, unsigned limit);
void gate_release(struct gate *gate); /* nobody is inside or waits */
/* `pass` is called once: within this call, or by who leaves. */
void gate_enter(struct gate *gate, struct gate_visitor *visitor);
void gate_leave(struct gate *gate);

#endif
