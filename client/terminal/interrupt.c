/* A thread waits in sigwait, so nothing of ours ever runs inside a signal handler. SIGUSR2, raised
 * by interrupt_stop, ends the thread. */
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
	/* timeout(1), for one, sends its signal to the process and then to the group, so this
	 * process gets two */
	SAME_SIGNAL_MS = 500,
};

struct interrupt {
	struct lock lock;
	struct lock_condition raised;
	atomic_int signal;
	struct http_client *watched[WATCHED_MAX]; /* guarded by lock */
	size_t watched_count;                     /* guarded by lock */
	pthread_t thread;
	sigset_t signals;
};

static void *interrupt_run(void *argument);
static void interrupt_raise(struct interrupt *interrupt, int signal);
static void sleep_plainly(int64_t ms);

struct interrupt *interrupt_start(void)
{
	struct interrupt *const interrupt = memory_new(sizeof *interrupt);
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
	if (interrupt == NULL) {
		sleep_plainly(ms);
		return true;
	}
	const int64_t deadline = clock_monotonic_ms() + ms;
	lock_enter(&interrupt->lock);
	while (atomic_load(&interrupt->signal) == 0) {
		const int64_t left = deadline - clock_monotonic_ms();
		if (left <= 0 || !lock_wait_for(&interrupt->lock, &interrupt->raised, left))
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
	for (size_t i = 0; i < interrupt->watched_count; i++)
		if (interrupt->watched[i] == client)
			interrupt->watched[i--] = interrupt->watched[--interrupt->watched_count];
	lock_leave(&interrupt->lock);
}

static void *interrupt_run(void *argument)
{
	struct interrupt *const interrupt = argument;
	for (int64_t first_ms = 0;;) {
		int signal = 0;
		if (sigwait(&interrupt->signals, &signal) != 0)
			continue;
		if (signal == SIGUSR2)
			return NULL;
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

static void sleep_plainly(int64_t ms)
{
	const struct timespec duration = {.tv_sec = ms / 1000, .tv_nsec = (ms % 1000) * 1000000};
	nanosleep(&duration, NULL);
}
