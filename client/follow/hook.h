/* A shell command that a person gave, run once with a few variables more, its stdout moved to
 * stderr where stdout is ours. */
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
	size_t count;
	bool stdout_to_stderr;
};
/* Waits for its end: 0 with the exit status (128 + the signal when one ended it); -1 when it could
 * not be started. When a signal comes meanwhile, the command gets SIGTERM and is waited for. */
int hook_run(
	const struct hook *hook, struct interrupt *interrupt, int *out_status, struct error *err);

#endif
