#include "tests/unit/base/abort_check.h"

#include <check.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

void abort_check(void (*run)(void *argument), void *argument)
{
	const pid_t child = fork();
	ck_assert_int_ge(child, 0);
	if (child == 0) {
		const struct rlimit no_core = {0, 0};
		setrlimit(RLIMIT_CORE, &no_core);
		dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
		signal(SIGABRT, SIG_DFL);
		run(argument);
		_exit(0);
	}
	int status = 0;
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_msg(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT,
		"it did not abort (status %d)", status);
}
