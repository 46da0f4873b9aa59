/* The rate of background work, and whether it may go on. */
#ifndef STORAGE_CORE_WORK_PACE_H
#define STORAGE_CORE_WORK_PACE_H

#include <stdbool.h>
#include <stddef.h>

struct work_pace {
	/* Called before bytes are read; may sleep. False: give up (busy). */
	bool (*spend)(void *owner, size_t bytes);
	void *owner;
};

#endif
