/* Who looks on while much is read and computed: told of each piece, and asked whether to go on. */
#ifndef WEIGHTS_MODEL_WORK_WATCH_H
#define WEIGHTS_MODEL_WORK_WATCH_H

#include <stdint.h>

#include "base/error.h"

struct work_watch { /* embed in whoever watches */
	/* From any of the threads that work: so many bytes more are done. -1 with busy ends the
	 * work with that error. */
	int (*step)(struct work_watch *watch, uint64_t bytes, struct error *err);
};

/* `watch` may be NULL. */
static inline int work_watch_step(struct work_watch *watch, uint64_t bytes, struct error *err)
{
	return watch != NULL ? watch->step(watch, bytes, err) : 0;
}

#endif
