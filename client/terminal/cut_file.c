#include "client/terminal/cut_file.h"

#include <signal.h>
#include <unistd.h>

#include "client/terminal/exit_code.h"

static const char SENTENCE[] =
	"deltabucket: a file became shorter while it was read, or its disk failed; leave the files of a"
	" command unchanged until it has ended\n";

static void cut_file_end_process(int signal);

void cut_file_guard(void)
{
	struct sigaction action = {.sa_handler = cut_file_end_process};
	sigemptyset(&action.sa_mask);
	sigaction(SIGBUS, &action, NULL);
}

/* A signal handler: calls only async-signal-safe functions. */
static void cut_file_end_process(int signal)
{
	(void)signal;
	if (write(STDERR_FILENO, SENTENCE, sizeof(SENTENCE) - 1) < 0)
		_exit(EXIT_CODE_FAILURE);
	_exit(EXIT_CODE_MALFORMED);
}
