/* A command as main runs it, inside of the test: its words, what it prints, how it ends. */
#ifndef TESTS_UNIT_CLIENT_COMMAND_FIXTURE_H
#define TESTS_UNIT_CLIENT_COMMAND_FIXTURE_H

#include "base/buffer.h"
#include "base/file.h"
#include "client/commands/commands.h"

struct command_result {
	int status; /* 0 or -1 */
	struct error err;
	bool usage;
	struct buffer output; /* what went to stdout */
};
/* `words`: what stands behind the command's name, split at spaces. `endpoint` may be NULL. The
 * result is for command_result_release. */
struct command_result command_fixture_run(
	command_fn *run, enum command_bit bit, const char *endpoint, const char *words);
/* The same, and what it writes goes through this table. */
struct command_result command_fixture_run_on(const struct file_ops *files, command_fn *run,
	enum command_bit bit, const char *endpoint, const char *words);
void command_result_release(struct command_result *result);

#endif
