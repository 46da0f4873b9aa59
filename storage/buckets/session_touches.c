#include "storage/buckets/session_touches.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/memory.h"

struct session_touches {
	_Atomic bool waits[SESSION_TOUCHES_MAX];
};

static _Atomic bool *mark_of(struct session_touches *touches, const uint8_t id[SESSION_ID_BYTES]);

struct session_touches *session_touches_new(void)
{
	return memory_new(sizeof(struct session_touches));
}

void session_touches_free(struct session_touches *touches)
{
	free(touches);
}

bool session_touches_begin(struct session_touches *touches, const uint8_t id[SESSION_ID_BYTES])
{
	return !atomic_exchange(mark_of(touches, id), true);
}

void session_touches_end(struct session_touches *touches, const uint8_t id[SESSION_ID_BYTES])
{
	atomic_store(mark_of(touches, id), false);
}

static _Atomic bool *mark_of(struct session_touches *touches, const uint8_t id[SESSION_ID_BYTES])
{
	return &touches->waits[id[0] % SESSION_TOUCHES_MAX];
}
