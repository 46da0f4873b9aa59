#include "server/commands/stop_signals.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>

enum { SLICE_MS = 100 };

static void fill(sigset_t *out);

void stop_signals_block(void)
{
	sigset_t set;
	fill(&set);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
}

bool stop_signals_came(void)
{
	sigset_t pending;
	sigemptyset(&pending);
	sigpending(&pending);
	return sigismember(&pending, SIGINT) == 1 || sigismember(&pending, SIGTERM) == 1;
}

/* The signal stays pending, so it is not waited for. */
void stop_signals_sleep(int64_t ms)
{
	for (; ms > 0 && !stop_signals_came(); ms -= SLICE_MS)
		nanosleep(&(struct timespec){.tv_nsec = (ms < SLICE_MS ? ms : SLICE_MS) * 1000000},
			NULL);
}

static void fill(sigset_t *out)
{
	sigemptyset(out);
	sigaddset(out, SIGINT);
	sigaddset(out, SIGTERM);
}
