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
	LOOK_MS = 500
};

struct guest {
	int fd;
	int64_t came_ms;
	int64_t heard_ms;
};

struct lingering_close {
	pthread_t thread;
	int event_fd; /* somebody came, or it is time to stop */
	/* the thread's own, oldest first, as what follows */
	struct guest guests[LINGERING_CLOSE_MOST];
	int count;
	char dropped[DROPPED_AT_ONCE];
	size_t since_nap; /* bytes */
	struct lock lock; /* guards what follows */
	/* descriptors that the thread has not taken yet */
	int arrivals[LINGERING_CLOSE_MOST];
	int arrival_count;
	bool stops;
};

static void *run(void *owner);
static bool welcome(struct lingering_close *lingering);
static void leave(struct lingering_close *lingering, int which);
static void wait_for_bytes(const struct lingering_close *lingering);
static void drop(struct lingering_close *lingering);
static bool drop_some(struct lingering_close *lingering, struct guest *guest, int64_t now);
static void nap_now_and_then(struct lingering_close *lingering, size_t dropped);
static void tell(struct lingering_close *lingering);

struct lingering_close *lingering_close_start(void)
{
	struct lingering_close *const lingering = memory_new(sizeof *lingering);
	lingering->event_fd = eventfd(0, EFD_CLOEXEC);
	if (lingering->event_fd < 0) {
		free(lingering);
		return NULL;
	}
	lock_init(&lingering->lock, LOCK_LINGERING);
	lock_thread_start(&lingering->thread, "lingering", run, lingering);
	return lingering;
}

void lingering_close_take(struct lingering_close *lingering, int fd)
{
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
		tell(lingering);
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
	tell(lingering);
	pthread_join(lingering->thread, NULL);
	welcome(lingering);
	while (lingering->count > 0)
		leave(lingering, lingering->count - 1);
	close(lingering->event_fd);
	lock_release(&lingering->lock);
	free(lingering);
}

static void *run(void *owner)
{
	struct lingering_close *const lingering = owner;
	while (welcome(lingering)) {
		wait_for_bytes(lingering);
		drop(lingering);
	}
	return NULL;
}

/* False: it is time to stop. */
static bool welcome(struct lingering_close *lingering)
{
	const int64_t now = clock_monotonic_ms();
	lock_enter(&lingering->lock);
	for (int i = 0; i < lingering->arrival_count; i++) {
		if (lingering->count == LINGERING_CLOSE_MOST)
			leave(lingering, 0);
		lingering->guests[lingering->count++] =
			(struct guest){lingering->arrivals[i], now, now};
	}
	lingering->arrival_count = 0;
	const bool goes_on = !lingering->stops;
	lock_leave(&lingering->lock);
	return goes_on;
}

static void leave(struct lingering_close *lingering, int which)
{
	close(lingering->guests[which].fd);
	lingering->count--;
	for (int i = which; i < lingering->count; i++)
		lingering->guests[i] = lingering->guests[i + 1];
}

static void wait_for_bytes(const struct lingering_close *lingering)
{
	struct pollfd polled[LINGERING_CLOSE_MOST + 1] = {
		{.fd = lingering->event_fd, .events = POLLIN}};
	uint64_t events;
	for (int i = 0; i < lingering->count; i++)
		polled[i + 1] = (struct pollfd){.fd = lingering->guests[i].fd, .events = POLLIN};
	if (poll(polled, (nfds_t)lingering->count + 1, lingering->count > 0 ? LOOK_MS : -1) > 0 &&
		polled[0].revents != 0)
		(void)!read(lingering->event_fd, &events, sizeof events);
}

static void drop(struct lingering_close *lingering)
{
	const int64_t now = clock_monotonic_ms();
	for (int i = lingering->count - 1; i >= 0; i--) {
		struct guest *const guest = &lingering->guests[i];
		const bool is_over = now - guest->came_ms >= LINGERING_CLOSE_MS ||
			now - guest->heard_ms >= LINGERING_CLOSE_IDLE_MS;
		if (!drop_some(lingering, guest, now) || is_over)
			leave(lingering, i);
	}
}

/* False once the client has ended, or its connection has. */
static bool drop_some(struct lingering_close *lingering, struct guest *guest, int64_t now)
{
	const ssize_t got =
		recv(guest->fd, lingering->dropped, sizeof lingering->dropped, MSG_DONTWAIT);
	if (got > 0) {
		guest->heard_ms = now;
		nap_now_and_then(lingering, (size_t)got);
	}
	return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
}

/* Whoever sends what nobody wants takes a part of one processor, at a gigabyte a second, and not
 * all of it. */
static void nap_now_and_then(struct lingering_close *lingering, size_t dropped)
{
	lingering->since_nap += dropped;
	if (lingering->since_nap < NAP_AFTER_BYTES)
		return;
	nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
	lingering->since_nap = 0;
}

static void tell(struct lingering_close *lingering)
{
	const uint64_t one = 1;
	const ssize_t written = write(lingering->event_fd, &one, sizeof one);
	ASSERT(written == sizeof one);
}
