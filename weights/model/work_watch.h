/* Watches long work: it hears of each piece that is done and may end the work. */
#ifndef WEIGHTS_MODEL_WORK_WATCH_H
#define WEIGHTS_MODEL_WORK_WATCH_H

#include <stdint.h>

#include "base/error.h"

struct work_watch { /* embed it in the struct of the watcher */
	/* Called by any of the working threads when `bytes` more bytes are done. -1 with busy ends
	 * the work with that error. */
	int (*step)(struct work_watch *watch, uint64_t bytes, struct error *err);
};

/* `watch` may be NULL. */
static inline int work_watch_step(struct work_watch *watch, uint64_t bytes, struct error *err)
{
	return watch != NULL ? watch->step(watch, bytes, err) : 0;
}

#endif
