/* How fast work behind the requests may go on, and whether it may. */
#ifndef STORAGE_CORE_WORK_PACE_H
#define STORAGE_CORE_WORK_PACE_H

#include <stdbool.h>
#include <stddef.h>

struct work_pace {
	/* Called with bytes about to be read; false: give up (busy). */
	bool (*spend)(void *owner, size_t bytes);
	void *owner;
};

#endif
