#include "base/net/pipe_signal.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

static sigset_t only_pipe(void);

void pipe_signal_hold(struct pipe_signal *held)
{
	const sigset_t pipe = only_pipe();
	sigset_t pending;
	sigpending(&pending);
	held->was_pending = sigismember(&pending, SIGPIPE) == 1;
	pthread_sigmask(SIG_BLOCK, &pipe, &held->before);
}

/* A write raises the signal in the thread that writes, so it waits here and nowhere else. One that
 * waited before belongs to the caller. */
void pipe_signal_let_go(const struct pipe_signal *held)
{
	const sigset_t pipe = only_pipe();
	const struct timespec at_once = {0};
	const int os_errno = errno;
	if (!held->was_pending)
		while (sigtimedwait(&pipe, NULL, &at_once) < 0 && errno == EINTR)
			continue;
	pthread_sigmask(SIG_SETMASK, &held->before, NULL);
	errno = os_errno;
}

static sigset_t only_pipe(void)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGPIPE);
	return set;
}
