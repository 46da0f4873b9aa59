/* All threads block the signals, and one thread takes them with sigwait. So no code runs inside a
 * signal handler, and the thread may use locks. The state is one number: 0, then the first signal.
 * The lock guards the list of clients, so that a client is either cancelled by the thread or sees
 * the signal when it is added. interrupt_stop ends the thread with SIGUSR2, which means nothing
 * when others send it. */
#include "client/terminal/interrupt.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/thread/lock.h"
#include "client/terminal/exit_code.h"

enum {
	WATCHED_MAX = 128,
	/* A signal that follows the first within this time is the same one: timeout(1), for
	 * example, sends it to the process and then to the group. */
	SAME_SIGNAL_MS = 500,
};

struct interrupt {
	struct lock lock;
	struct lock_condition raised;
	atomic_int signal;
	atomic_bool is_stopping;
	struct http_client *watched[WATCHED_MAX]; /* guarded by lock */
	size_t watched_count;                     /* guarded by lock */
	pthread_t thread;
	sigset_t signals;
};

static void *interrupt_run(void *argument);
static void interrupt_raise(struct interrupt *interrupt, int signal);
static void sleep_uninterrupted(int64_t ms);

struct interrupt *interrupt_start(void)
{
	struct interrupt *const interrupt = memory_new(sizeof(*interrupt));
	lock_init(&interrupt->lock, LOCK_INTERRUPT);
	lock_condition_init(&interrupt->raised);
	sigemptyset(&interrupt->signals);
	sigaddset(&interrupt->signals, SIGINT);
	sigaddset(&interrupt->signals, SIGTERM);
	sigaddset(&interrupt->signals, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &interrupt->signals, NULL);
	lock_thread_start(&interrupt->thread, "interrupt", interrupt_run, interrupt);
	return interrupt;
}

void interrupt_stop(struct interrupt *interrupt)
{
	if (interrupt == NULL)
		return;
	atomic_store(&interrupt->is_stopping, true);
	pthread_kill(interrupt->thread, SIGUSR2);
	pthread_join(interrupt->thread, NULL);
	ASSERT(interrupt->watched_count == 0);
	lock_condition_release(&interrupt->raised);
	lock_release(&interrupt->lock);
	free(interrupt);
}

int interrupt_signal(const struct interrupt *interrupt)
{
	return interrupt == NULL ? 0 : atomic_load(&interrupt->signal);
}

int interrupt_check(const struct interrupt *interrupt, struct error *err)
{
	if (interrupt_signal(interrupt) == 0)
		return 0;
	return error_set(err, ERROR_BUSY, "interrupted by a signal");
}

bool interrupt_sleep(struct interrupt *interrupt, int64_t ms)
{
	ASSERT(ms >= 0);
	if (interrupt == NULL) {
		sleep_uninterrupted(ms);
		return true;
	}
	const int64_t deadline_ms = clock_monotonic_ms() + ms;
	lock_enter(&interrupt->lock);
	while (atomic_load(&interrupt->signal) == 0) {
		const int64_t left_ms = deadline_ms - clock_monotonic_ms();
		if (left_ms <= 0 || !lock_wait_for(&interrupt->lock, &interrupt->raised, left_ms))
			break;
	}
	lock_leave(&interrupt->lock);
	return atomic_load(&interrupt->signal) == 0;
}

void interrupt_watch(struct interrupt *interrupt, struct http_client *client)
{
	if (interrupt == NULL)
		return;
	lock_enter(&interrupt->lock);
	ASSERT(interrupt->watched_count < WATCHED_MAX);
	interrupt->watched[interrupt->watched_count++] = client;
	if (atomic_load(&interrupt->signal) != 0)
		http_client_cancel(client);
	lock_leave(&interrupt->lock);
}

void interrupt_forget(struct interrupt *interrupt, struct http_client *client)
{
	if (interrupt == NULL)
		return;
	lock_enter(&interrupt->lock);
	const size_t before = interrupt->watched_count;
	for (size_t i = 0; i < interrupt->watched_count; i++)
		if (interrupt->watched[i] == client)
			interrupt->watched[i--] = interrupt->watched[--interrupt->watched_count];
	ASSERT(interrupt->watched_count + 1 == before); /* it was watched, and once */
	lock_leave(&interrupt->lock);
}

static void *interrupt_run(void *argument)
{
	struct interrupt *const interrupt = argument;
	for (int64_t first_ms = 0;;) {
		int signal = 0;
		if (sigwait(&interrupt->signals, &signal) != 0)
			continue;
		if (signal == SIGUSR2 && atomic_load(&interrupt->is_stopping))
			return NULL;
		if (signal == SIGUSR2)
			continue;
		const int64_t now_ms = clock_monotonic_ms();
		if (atomic_load(&interrupt->signal) == 0) {
			first_ms = now_ms;
			interrupt_raise(interrupt, signal);
		} else if (now_ms - first_ms >= SAME_SIGNAL_MS) {
			_exit(EXIT_CODE_SIGNAL_BASE + signal);
		}
	}
}

static void interrupt_raise(struct interrupt *interrupt, int signal)
{
	lock_enter(&interrupt->lock);
	atomic_store(&interrupt->signal, signal);
	for (size_t i = 0; i < interrupt->watched_count; i++)
		http_client_cancel(interrupt->watched[i]);
	lock_broadcast(&interrupt->raised);
	lock_leave(&interrupt->lock);
}

static void sleep_uninterrupted(int64_t ms)
{
	const struct timespec duration = {.tv_sec = ms / 1000, .tv_nsec = (ms % 1000) * 1000000};
	nanosleep(&duration, NULL);
}
