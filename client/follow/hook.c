/* The command runs under /bin/sh in a process group of its own, so that SIGTERM reaches everything
 * that it started. The wait polls, because it must notice both the end of the command and a signal
 * that is meant for us. */
#include "client/follow/hook.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "client/terminal/interrupt.h"

enum { VARIABLE_MAX_BYTES = 16 * 1024, WAIT_MS = 20 };

extern char **environ;

static int start(const struct hook *hook, pid_t *out_pid);
static char **make_environment(const struct hook *hook, size_t *out_owned);
static bool is_replaced(const char *entry, const struct hook *hook);
static void free_environment(char **made, size_t owned);

int hook_run(
	const struct hook *hook, struct interrupt *interrupt, int *out_status, struct error *err)
{
	pid_t pid;
	int status = 0;
	bool told = false; /* the command to stop */
	ASSERT(hook->command != NULL);
	errno = start(hook, &pid);
	if (errno != 0)
		return error_set_errno(err, "starting the command \"%s\"", hook->command);
	while (waitpid(pid, &status, WNOHANG) == 0) {
		if (!told && interrupt_signal(interrupt) != 0) {
			kill(-pid, SIGTERM);
			told = true;
		}
		if (told)
			usleep(WAIT_MS * 1000);
		else
			interrupt_sleep(interrupt, WAIT_MS);
	}
	*out_status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
	return 0;
}

/* Starts the command, as the leader of a process group, with no signal blocked and with the default
 * SIGPIPE, which we ignore. Returns 0 or an errno. */
static int start(const struct hook *hook, pid_t *out_pid)
{
	posix_spawnattr_t attributes;
	posix_spawn_file_actions_t actions;
	sigset_t none;
	sigset_t defaults;
	size_t owned;
	char *const shell = memory_copy_text("sh");
	char *const flag = memory_copy_text("-c");
	char *const command = memory_copy_text(hook->command);
	char *const words[] = {shell, flag, command, NULL};
	char **const environment = make_environment(hook, &owned);
	sigemptyset(&none);
	sigemptyset(&defaults);
	sigaddset(&defaults, SIGPIPE);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setsigdefault(&attributes, &defaults);
	posix_spawnattr_setpgroup(&attributes, 0);
	posix_spawnattr_setflags(&attributes,
		POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
	posix_spawn_file_actions_init(&actions);
	if (hook->stdout_to_stderr)
		posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
	const int failure =
		posix_spawn(out_pid, "/bin/sh", &actions, &attributes, words, environment);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
	free_environment(environment, owned);
	free(command);
	free(flag);
	free(shell);
	return failure;
}

/* Our environment with the hook's variables over it. Entries from index *out_owned on must be
 * freed. */
static char **make_environment(const struct hook *hook, size_t *out_owned)
{
	size_t inherited = 0;
	while (environ[inherited] != NULL)
		inherited++;
	char **const made = memory_new_array(inherited + hook->count + 1, sizeof(*made));
	size_t count = 0;
	for (size_t i = 0; i < inherited; i++)
		if (!is_replaced(environ[i], hook))
			made[count++] = environ[i];
	ASSERT(count <= inherited);
	*out_owned = count;
	for (size_t i = 0; i < hook->count; i++) {
		struct buffer text;
		buffer_init(&text, VARIABLE_MAX_BYTES);
		buffer_format(&text, "%s=%s", hook->variables[i].name, hook->variables[i].value);
		made[count++] = memory_copy_text(buffer_text(&text));
		buffer_release(&text);
	}
	return made;
}

static bool is_replaced(const char *entry, const struct hook *hook)
{
	for (size_t i = 0; i < hook->count; i++) {
		const size_t len = strlen(hook->variables[i].name);
		if (strncmp(entry, hook->variables[i].name, len) == 0 && entry[len] == '=')
			return true;
	}
	return false;
}

static void free_environment(char **made, size_t owned)
{
	for (size_t i = owned; made[i] != NULL; i++)
		free(made[i]);
	free(made);
}
