/* Runs a shell command that the user gave, once, with added environment variables. Its stdout goes
 * to stderr if our stdout carries JSON lines. The process must not have children of its own: those
 * of commands are ours, their orphans too, and a call takes the ends of all. One thread. */
#ifndef CLIENT_FOLLOW_HOOK_H
#define CLIENT_FOLLOW_HOOK_H

#include <stdbool.h>

#include "base/error.h"

struct stop;
struct output;

struct hook_variable {
	const char *name;
	const char *value;
};
struct hook {
	const char *command;
	const struct hook_variable *variables;
	size_t count;                /* of variables */
	const struct output *output; /* for notes; NULL: none, and nothing carries JSON lines */
};
/* Runs the command and waits for its end. 0 with the exit status, which is 128 + the signal's
 * number when a signal ended it; -1 when it could not be started. When a signal for us comes
 * meanwhile, the command's process group gets SIGTERM, and the call waits until all of the group
 * have ended, however long that takes. So it does when such a signal ended the shell. */
int hook_run(const struct hook *hook, struct stop *stop, int *out_status, struct error *err);

#endif
