/* The check of the order keeps a list of the held locks for each thread. That list is the only
 * thread-local variable of the program and exists only in development builds. */
#include "base/thread/lock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/error.h"

#ifdef DELTABUCKET_DEV

enum { HELD_MAX = 16 };

struct held_locks {
	const struct lock *locks[HELD_MAX];
	int count;
};

static _Thread_local struct held_locks held;

static const struct {
	const char *name;
	int rank;
} classes[] = {
#define LOCK_CLASS(name, rank, guards) [LOCK_##name] = {#name, rank},
#include "base/thread/lock.def"
#undef LOCK_CLASS
};

static void order_failed(const struct lock *lock, const char *fault, const struct lock *other)
{
	fprintf(stderr, "lock %s (rank %d) %s %s (rank %d)\n", classes[lock->class].name,
		classes[lock->class].rank, fault, classes[other->class].name,
		classes[other->class].rank);
	abort();
}

static void order_enter(const struct lock *lock)
{
	for (int i = 0; i < held.count; i++)
		if (classes[held.locks[i]->class].rank >= classes[lock->class].rank)
			order_failed(lock, "is taken while the thread holds", held.locks[i]);
}

static void order_entered(const struct lock *lock)
{
	ASSERT(held.count < HELD_MAX);
	held.locks[held.count++] = lock;
}

static bool order_holds(const struct lock *lock)
{
	for (int i = 0; i < held.count; i++)
		if (held.locks[i] == lock)
			return true;
	return false;
}

static void order_leave(const struct lock *lock)
{
	ASSERT(order_holds(lock));
	int at = held.count - 1;
	while (held.locks[at] != lock)
		at--;
	for (; at + 1 < held.count; at++)
		held.locks[at] = held.locks[at + 1];
	held.count--;
}

void lock_assert_held(const struct lock *lock)
{
	ASSERT(order_holds(lock));
}

#else

static void order_enter(const struct lock *lock)
{
	(void)lock;
}

static void order_entered(const struct lock *lock)
{
	(void)lock;
}

static void order_leave(const struct lock *lock)
{
	(void)lock;
}

void lock_assert_held(const struct lock *lock)
{
	(void)lock;
}

#endif

/* These calls fail only through a fault of this program. */
static void must(int code)
{
	ASSERT(code == 0);
}

void lock_init(struct lock *lock, enum lock_class class)
{
	ASSERT((unsigned)class < LOCK_CLASS_COUNT);
	must(pthread_mutex_init(&lock->mutex, NULL));
	lock->class = class;
}

void lock_release(struct lock *lock)
{
	must(pthread_mutex_destroy(&lock->mutex));
}

void lock_enter(struct lock *lock)
{
	order_enter(lock);
	must(pthread_mutex_lock(&lock->mutex));
	order_entered(lock);
}

void lock_leave(struct lock *lock)
{
	order_leave(lock);
	must(pthread_mutex_unlock(&lock->mutex));
}

void lock_condition_init(struct lock_condition *condition)
{
	pthread_condattr_t attributes;
	must(pthread_condattr_init(&attributes));
	must(pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC));
	must(pthread_cond_init(&condition->condition, &attributes));
	must(pthread_condattr_destroy(&attributes));
}

void lock_condition_release(struct lock_condition *condition)
{
	must(pthread_cond_destroy(&condition->condition));
}

void lock_wait(struct lock *lock, struct lock_condition *condition)
{
	lock_assert_held(lock);
	must(pthread_cond_wait(&condition->condition, &lock->mutex));
}

bool lock_wait_for(struct lock *lock, struct lock_condition *condition, int64_t timeout_ms)
{
	enum { MS_PER_SECOND = 1000, NS_PER_MS = 1000000, NS_PER_SECOND = 1000000000 };
	const int64_t wait_ms = timeout_ms > 0 ? timeout_ms : 0;
	struct timespec until;
	lock_assert_held(lock);
	must(clock_gettime(CLOCK_MONOTONIC, &until));
	until.tv_sec += wait_ms / MS_PER_SECOND;
	until.tv_nsec += wait_ms % MS_PER_SECOND * NS_PER_MS;
	if (until.tv_nsec >= NS_PER_SECOND) {
		until.tv_sec++;
		until.tv_nsec -= NS_PER_SECOND;
	}
	const int code = pthread_cond_timedwait(&condition->condition, &lock->mutex, &until);
	ASSERT(code == 0 || code == ETIMEDOUT);
	return code == 0;
}

void lock_signal(struct lock_condition *condition)
{
	must(pthread_cond_signal(&condition->condition));
}

void lock_broadcast(struct lock_condition *condition)
{
	must(pthread_cond_broadcast(&condition->condition));
}

void lock_thread_start(
	pthread_t *out_thread, const char *name, void *(*run)(void *), void *argument)
{
	char short_name[16];
	must(pthread_create(out_thread, NULL, run, argument));
	snprintf(short_name, sizeof(short_name), "%s", name);
	/* no check: a thread that has already ended needs no name */
	pthread_setname_np(*out_thread, short_name);
}
