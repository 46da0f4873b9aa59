/* All threads block the signals, and one thread takes them with sigwait. So no code runs inside a
 * signal handler, and the thread may use locks. interrupt_end ends the thread with SIGUSR2, which
 * means nothing when others send it. */
#include "client/terminal/interrupt.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/thread/lock.h"
#include "client/terminal/exit_code.h"

enum {
	/* A signal that follows the first within this time is the same one: timeout(1), for
	 * example, sends it to the process and then to the group. */
	SAME_SIGNAL_MS = 500,
};

struct interrupt {
	struct stop *stop;
	atomic_bool is_ending;
	pthread_t thread;
	sigset_t signals;
};

static void *interrupt_run(void *argument);

struct interrupt *interrupt_start(struct stop *stop)
{
	ASSERT(stop != NULL);
	struct interrupt *const interrupt = memory_new(sizeof(*interrupt));
	interrupt->stop = stop;
	sigemptyset(&interrupt->signals);
	sigaddset(&interrupt->signals, SIGINT);
	sigaddset(&interrupt->signals, SIGTERM);
	sigaddset(&interrupt->signals, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &interrupt->signals, NULL);
	lock_thread_start(&interrupt->thread, "interrupt", interrupt_run, interrupt);
	return interrupt;
}

void interrupt_end(struct interrupt *interrupt)
{
	if (interrupt == NULL)
		return;
	atomic_store(&interrupt->is_ending, true);
	pthread_kill(interrupt->thread, SIGUSR2);
	pthread_join(interrupt->thread, NULL);
	free(interrupt);
}

static void *interrupt_run(void *argument)
{
	struct interrupt *const interrupt = argument;
	for (int64_t first_ms = 0;;) {
		int signal = 0;
		if (sigwait(&interrupt->signals, &signal) != 0)
			continue;
		if (signal == SIGUSR2 && atomic_load(&interrupt->is_ending))
			return NULL;
		if (signal == SIGUSR2)
			continue;
		const int64_t now_ms = clock_monotonic_ms();
		if (stop_reason(interrupt->stop) == 0) {
			first_ms = now_ms;
			stop_give(interrupt->stop, signal);
		} else if (now_ms - first_ms >= SAME_SIGNAL_MS) {
			_exit(EXIT_CODE_SIGNAL_BASE + signal);
		}
	}
}
