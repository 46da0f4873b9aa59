/* The state is one number: 0, then the first reason. The lock guards the list of clients, so that a
 * client is either cancelled by stop_give or sees the word when it is added. */
#include "client/work/stop.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/thread/lock.h"

struct stop {
	struct lock lock;
	struct lock_condition given;
	atomic_int reason;
	struct http_client **watched; /* guarded by lock */
	size_t watched_count;         /* guarded by lock */
	size_t watched_capacity;      /* guarded by lock */
};

static void sleep_to_the_end(int64_t ms);

struct stop *stop_new(void)
{
	struct stop *const stop = memory_new(sizeof(*stop));
	lock_init(&stop->lock, LOCK_STOP);
	lock_condition_init(&stop->given);
	return stop;
}

void stop_free(struct stop *stop)
{
	if (stop == NULL)
		return;
	ASSERT(stop->watched_count == 0);
	lock_condition_release(&stop->given);
	lock_release(&stop->lock);
	free(stop->watched);
	free(stop);
}

void stop_give(struct stop *stop, int reason)
{
	int none = 0;
	ASSERT(reason != 0);
	lock_enter(&stop->lock);
	atomic_compare_exchange_strong(&stop->reason, &none, reason);
	for (size_t i = 0; i < stop->watched_count; i++)
		http_client_cancel(stop->watched[i]);
	lock_broadcast(&stop->given);
	lock_leave(&stop->lock);
}

int stop_reason(const struct stop *stop)
{
	return stop == NULL ? 0 : atomic_load(&stop->reason);
}

int stop_check(const struct stop *stop, struct error *err)
{
	const int reason = stop_reason(stop);
	if (reason == 0)
		return 0;
	return error_set(err, ERROR_BUSY, "%s",
		reason == STOP_CANCELLED ? "cancelled by the caller" : "interrupted by a signal");
}

bool stop_sleep(struct stop *stop, int64_t ms)
{
	ASSERT(ms >= 0);
	if (stop == NULL) {
		sleep_to_the_end(ms);
		return true;
	}
	const int64_t deadline_ms = clock_monotonic_ms() + ms;
	lock_enter(&stop->lock);
	while (atomic_load(&stop->reason) == 0) {
		const int64_t left_ms = deadline_ms - clock_monotonic_ms();
		if (left_ms <= 0 || !lock_wait_for(&stop->lock, &stop->given, left_ms))
			break;
	}
	lock_leave(&stop->lock);
	return atomic_load(&stop->reason) == 0;
}

void stop_watch(struct stop *stop, struct http_client *client)
{
	if (stop == NULL)
		return;
	lock_enter(&stop->lock);
	if (stop->watched_count == stop->watched_capacity) {
		stop->watched_capacity = 2 * stop->watched_capacity + 8;
		stop->watched = memory_grow(
			stop->watched, stop->watched_capacity, sizeof(struct http_client *));
	}
	stop->watched[stop->watched_count++] = client;
	if (atomic_load(&stop->reason) != 0)
		http_client_cancel(client);
	lock_leave(&stop->lock);
}

void stop_forget(struct stop *stop, struct http_client *client)
{
	if (stop == NULL)
		return;
	lock_enter(&stop->lock);
	const size_t before = stop->watched_count;
	for (size_t i = 0; i < stop->watched_count; i++)
		if (stop->watched[i] == client)
			stop->watched[i--] = stop->watched[--stop->watched_count];
	ASSERT(stop->watched_count + 1 == before); /* it was watched, and once */
	lock_leave(&stop->lock);
}

static void sleep_to_the_end(int64_t ms)
{
	const struct timespec duration = {.tv_sec = ms / 1000, .tv_nsec = (ms % 1000) * 1000000};
	nanosleep(&duration, NULL);
}
