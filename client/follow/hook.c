/* The command runs under /bin/sh in a process group of its own, so that SIGTERM reaches everything
 * that it started. The wait polls, because it must notice both the end of the command and a signal
 * that is meant for us.
 *
 * The shell dies of SIGTERM at once, while a script in it may still have to tidy up: a command that
 * was told to stop has ended when its whole group has. Where we are process 1 of a container, all
 * others die with us. A process counts as one of its group until somebody takes its end, so orphans
 * of commands become our children, and each wait takes the ends of all of them. */
#include "client/follow/hook.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/memory.h"
#include "client/work/stop.h"
#include "client/work/output.h"

enum {
	VARIABLE_MAX_BYTES = 16 * 1024,
	WAIT_MS = 20,
	/* a command that was told to stop and still runs is worth a note after this time */
	SILENCE_MS = 3000
};

/* A command that was started. */
struct running {
	const struct hook *hook;
	pid_t shell;     /* and its process group */
	bool has_ended;  /* the shell */
	int status;      /* of the shell, as waitpid gives it */
	bool is_told;    /* to stop */
	int64_t told_ms; /* monotonic: since when */
	bool is_noted;   /* that it still runs */
};

extern char **environ;

static void adopt_orphans(void);
static void take_ends(struct running *running);
static bool is_awaited(const struct running *running);
static void watch(struct running *running, struct stop *stop);
static int start(const struct hook *hook, pid_t *out_pid);
static char **make_environment(const struct hook *hook, size_t *out_owned);
static bool is_replaced(const char *entry, const struct hook *hook);
static void free_environment(char **made, size_t owned);

int hook_run(const struct hook *hook, struct stop *stop, int *out_status, struct error *err)
{
	struct running running = {.hook = hook};
	ASSERT(hook->command != NULL);
	adopt_orphans();
	errno = start(hook, &running.shell);
	if (errno != 0)
		return error_set_errno(err, "starting the command \"%s\"", hook->command);
	for (take_ends(&running); is_awaited(&running); take_ends(&running))
		watch(&running, stop);
	const int status = running.status;
	*out_status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
	return 0;
}

/* Where our parent ignores SIGCHLD, so do we, and would not learn how the command ended. */
static void adopt_orphans(void)
{
	signal(SIGCHLD, SIG_DFL);
	prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
}

static void take_ends(struct running *running)
{
	pid_t ended;
	int status;
	while ((ended = waitpid(-1, &status, WNOHANG)) > 0)
		if (ended == running->shell) {
			running->has_ended = true;
			running->status = status;
		}
}

/* A command that ends by itself may leave processes behind. One that was told to stop may not, by
 * us or by somebody that ended the shell with a signal. SIGKILL asks nobody to tidy up. */
static bool is_awaited(const struct running *running)
{
	if (!running->has_ended)
		return true;
	const bool is_stopped = running->is_told ||
		(WIFSIGNALED(running->status) && WTERMSIG(running->status) != SIGKILL);
	return is_stopped && (kill(-running->shell, 0) == 0 || errno != ESRCH);
}

/* Sleeps a while, and hands a signal on. */
static void watch(struct running *running, struct stop *stop)
{
	if (!running->is_told && stop_reason(stop) != 0) {
		kill(-running->shell, SIGTERM);
		running->is_told = true;
		running->told_ms = clock_monotonic_ms();
	}
	if (!running->is_told) {
		stop_sleep(stop, WAIT_MS);
		return;
	}
	usleep(WAIT_MS * 1000);
	if (running->is_noted || clock_monotonic_ms() - running->told_ms < SILENCE_MS)
		return;
	running->is_noted = true;
	if (running->hook->output != NULL)
		output_note(running->hook->output,
			"the command was told to stop and still runs; follow waits for its end "
			"(another signal ends follow at once, and not the command)");
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
	if (hook->output != NULL && hook->output->json)
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
