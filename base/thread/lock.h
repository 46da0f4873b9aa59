/* Mutexes with a name and a rank. A thread takes locks only in rising rank. Development builds
 * (--enable-dev) assert this, so that a possible deadlock becomes an assertion that names two
 * locks. A condition belongs to one lock. Every lock of the program is a row of lock.def. */
#ifndef BASE_THREAD_LOCK_H
#define BASE_THREAD_LOCK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum lock_class {
#define LOCK_CLASS(name, rank, guards) LOCK_##name,
#include "base/thread/lock.def"
#undef LOCK_CLASS
	LOCK_CLASS_COUNT
};

struct lock {
	pthread_mutex_t mutex;
	enum lock_class class;
};
struct lock_condition {
	pthread_cond_t condition; /* on the monotonic clock */
};

void lock_init(struct lock *lock, enum lock_class class);
void lock_release(struct lock *lock); /* destroys it */
void lock_enter(struct lock *lock);
void lock_leave(struct lock *lock);
void lock_assert_held(const struct lock *lock); /* does nothing in release builds */

void lock_condition_init(struct lock_condition *condition);
void lock_condition_release(struct lock_condition *condition);
void lock_wait(struct lock *lock, struct lock_condition *condition);
/* False when `timeout_ms` passed first. */
bool lock_wait_for(struct lock *lock, struct lock_condition *condition, int64_t timeout_ms);
void lock_signal(struct lock_condition *condition);
void lock_broadcast(struct lock_condition *condition);

/* Like pthread_create, but aborts on failure and names the thread (at most 15 bytes). */
void lock_thread_start(
	pthread_t *out_thread, const char *name, void *(*run)(void *), void *argument);

#endif
