#include "tests/unit/storage/kill_fixture.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/unit.h"

enum { CANNOT_TELL = 99 };

static _Noreturn void live(const struct kill_child *child)
{
	struct file_faults faults;
	file_faults_init(&faults, child->kinds, child->countdown, 0);
	faults.kill = true;
	_exit(child->work(child, &faults.ops));
}

bool kill_child_run(struct kill_child *child, int *out_told)
{
	int ends[2];
	int told = 0;
	int status = 0;
	char byte;
	ck_assert_int_eq(pipe(ends), 0);
	const pid_t process = fork();
	ck_assert_int_ge(process, 0);
	if (process == 0) {
		close(ends[0]);
		child->pipe = ends[1];
		live(child);
	}
	close(ends[1]);
	while (read(ends[0], &byte, 1) == 1)
		told++;
	close(ends[0]);
	ck_assert_int_eq(waitpid(process, &status, 0), process);
	const bool alive = WIFEXITED(status) && WEXITSTATUS(status) == 0;
	ck_assert_msg(alive || (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL),
		"countdown %d ended with status %x", child->countdown, status);
	if (out_told != NULL)
		*out_told = told;
	return alive;
}

void kill_child_tell(const struct kill_child *child)
{
	if (write(child->pipe, "+", 1) != 1)
		_exit(CANNOT_TELL);
}
