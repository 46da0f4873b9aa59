/* One thread polls all its connections, oldest first in the list. Arrivals come through a list
 * under the lock and an event that wakes the thread. Dropping bytes is slowed down to about a
 * gigabyte a second, so that clients that send without end do not take a whole processor. */
#include "server/lingering_close.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/thread/lock.h"

enum {
	DROPPED_AT_ONCE = 64 * 1024,
	NAP_AFTER_BYTES = 1024 * 1024,
	NAP_NS = 1000 * 1000,
	LOOK_MS = 500 /* between two looks at the times of the connections */
};

struct closing { /* one connection */
	int fd;
	int64_t begun_ms;
	int64_t received_ms; /* of its last bytes */
};

struct lingering_close {
	pthread_t thread;
	int event_fd; /* a connection has arrived, or the thread must stop */
	/* the thread's own, up to since_nap; oldest first */
	struct closing closings[LINGERING_CLOSE_MOST];
	int count;
	char dropped[DROPPED_AT_ONCE];
	size_t since_nap; /* bytes that were dropped */
	struct lock lock; /* guards the fields below */
	/* descriptors that the thread has not taken yet */
	int arrivals[LINGERING_CLOSE_MOST];
	int arrival_count;
	bool stops;
};

static void *lingering_close_run(void *owner);
static bool take_arrivals(struct lingering_close *lingering);
static void close_at(struct lingering_close *lingering, int which);
static void wait_for_bytes(const struct lingering_close *lingering);
static void drop(struct lingering_close *lingering);
static bool drop_some(struct lingering_close *lingering, struct closing *closing, int64_t now);
static void limit_rate(struct lingering_close *lingering, size_t dropped);
static void wake_thread(struct lingering_close *lingering);

struct lingering_close *lingering_close_start(void)
{
	struct lingering_close *const lingering = memory_new(sizeof(*lingering));
	lingering->event_fd = eventfd(0, EFD_CLOEXEC);
	if (lingering->event_fd < 0) {
		free(lingering);
		return NULL;
	}
	lock_init(&lingering->lock, LOCK_LINGERING);
	lock_thread_start(&lingering->thread, "lingering", lingering_close_run, lingering);
	return lingering;
}

void lingering_close_take(struct lingering_close *lingering, int fd)
{
	ASSERT(lingering != NULL && fd >= 0);
	const int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (own < 0)
		return;
	shutdown(own, SHUT_WR);
	lock_enter(&lingering->lock);
	const bool has_room = lingering->arrival_count < LINGERING_CLOSE_MOST;
	if (has_room)
		lingering->arrivals[lingering->arrival_count++] = own;
	lock_leave(&lingering->lock);
	if (has_room)
		wake_thread(lingering);
	else
		close(own);
}

void lingering_close_stop(struct lingering_close *lingering)
{
	if (lingering == NULL)
		return;
	lock_enter(&lingering->lock);
	lingering->stops = true;
	lock_leave(&lingering->lock);
	wake_thread(lingering);
	pthread_join(lingering->thread, NULL);
	take_arrivals(lingering);
	while (lingering->count > 0)
		close_at(lingering, lingering->count - 1);
	close(lingering->event_fd);
	lock_release(&lingering->lock);
	free(lingering);
}

static void *lingering_close_run(void *owner)
{
	struct lingering_close *const lingering = owner;
	while (take_arrivals(lingering)) {
		wait_for_bytes(lingering);
		drop(lingering);
	}
	return NULL;
}

/* Takes the arrivals over. False when the thread must stop. */
static bool take_arrivals(struct lingering_close *lingering)
{
	const int64_t now = clock_monotonic_ms();
	lock_enter(&lingering->lock);
	ASSERT(lingering->arrival_count <= LINGERING_CLOSE_MOST);
	for (int i = 0; i < lingering->arrival_count; i++) {
		if (lingering->count == LINGERING_CLOSE_MOST)
			close_at(lingering, 0);
		lingering->closings[lingering->count++] =
			(struct closing){lingering->arrivals[i], now, now};
	}
	lingering->arrival_count = 0;
	const bool goes_on = !lingering->stops;
	lock_leave(&lingering->lock);
	return goes_on;
}

static void close_at(struct lingering_close *lingering, int which)
{
	ASSERT(which >= 0 && which < lingering->count);
	close(lingering->closings[which].fd);
	lingering->count--;
	for (int i = which; i < lingering->count; i++)
		lingering->closings[i] = lingering->closings[i + 1];
}

static void wait_for_bytes(const struct lingering_close *lingering)
{
	struct pollfd polled[LINGERING_CLOSE_MOST + 1] = {
		{.fd = lingering->event_fd, .events = POLLIN}};
	uint64_t events;
	for (int i = 0; i < lingering->count; i++)
		polled[i + 1] = (struct pollfd){.fd = lingering->closings[i].fd, .events = POLLIN};
	if (poll(polled, (nfds_t)lingering->count + 1, lingering->count > 0 ? LOOK_MS : -1) > 0 &&
		polled[0].revents != 0)
		(void)!read(lingering->event_fd, &events, sizeof(events));
}

static void drop(struct lingering_close *lingering)
{
	const int64_t now = clock_monotonic_ms();
	for (int i = lingering->count - 1; i >= 0; i--) {
		struct closing *const closing = &lingering->closings[i];
		const bool is_over = now - closing->begun_ms >= LINGERING_CLOSE_MS ||
			now - closing->received_ms >= LINGERING_CLOSE_IDLE_MS;
		if (!drop_some(lingering, closing, now) || is_over)
			close_at(lingering, i);
	}
}

/* False when the client has closed or the connection is broken. */
static bool drop_some(struct lingering_close *lingering, struct closing *closing, int64_t now)
{
	const ssize_t got =
		recv(closing->fd, lingering->dropped, sizeof(lingering->dropped), MSG_DONTWAIT);
	if (got > 0) {
		closing->received_ms = now;
		limit_rate(lingering, (size_t)got);
	}
	return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
}

/* Sleeps a millisecond after each MiB. */
static void limit_rate(struct lingering_close *lingering, size_t dropped)
{
	lingering->since_nap += dropped;
	if (lingering->since_nap < NAP_AFTER_BYTES)
		return;
	nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
	lingering->since_nap = 0;
}

static void wake_thread(struct lingering_close *lingering)
{
	const uint64_t one = 1;
	const ssize_t written = write(lingering->event_fd, &one, sizeof(one));
	ASSERT(written == sizeof(one));
}
