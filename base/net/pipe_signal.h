/* Keeps SIGPIPE from a thread while it writes to connections. A peer that hangs up must not end a
 * process that has not ignored the signal, and a library must not change what a process does with
 * signals. Each thread for itself. */
#ifndef BASE_NET_PIPE_SIGNAL_H
#define BASE_NET_PIPE_SIGNAL_H

#include <signal.h>
#include <stdbool.h>

struct pipe_signal {
	sigset_t before; /* the thread's mask */
	bool was_pending;
};

void pipe_signal_hold(struct pipe_signal *held);
/* Takes away a SIGPIPE that came meanwhile, and gives the thread its mask back. errno stays. */
void pipe_signal_let_go(const struct pipe_signal *held);

#endif
