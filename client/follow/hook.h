/* Runs a shell command that the user gave, once, with added environment variables. Its stdout goes
 * to stderr if our stdout carries JSON lines. */
#ifndef CLIENT_FOLLOW_HOOK_H
#define CLIENT_FOLLOW_HOOK_H

#include <stdbool.h>

#include "base/error.h"

struct interrupt;

struct hook_variable {
	const char *name;
	const char *value;
};
struct hook {
	const char *command;
	const struct hook_variable *variables;
	size_t count; /* of variables */
	bool stdout_to_stderr;
};
/* Runs the command and waits for its end. 0 with the exit status, which is 128 + the signal's
 * number when a signal ended it; -1 when it could not be started. When a signal for us comes
 * meanwhile, the command gets SIGTERM, and the call still waits for it. */
int hook_run(
	const struct hook *hook, struct interrupt *interrupt, int *out_status, struct error *err);

#endif
