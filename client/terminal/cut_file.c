#include "client/terminal/cut_file.h"

#include <signal.h>
#include <unistd.h>

#include "client/terminal/exit_code.h"

static const char SENTENCE[] =
	"deltabucket: a file became shorter while it was read; files have to stay as they are until the"
	" command has ended (or its disk failed)\n";

static void end(int signal);

void cut_file_guard(void)
{
	struct sigaction action = {.sa_handler = end};
	sigemptyset(&action.sa_mask);
	sigaction(SIGBUS, &action, NULL);
}

/* Nothing but what may be called from a handler. */
static void end(int signal)
{
	(void)signal;
	if (write(STDERR_FILENO, SENTENCE, sizeof SENTENCE - 1) < 0)
		_exit(EXIT_CODE_FAILURE);
	_exit(EXIT_CODE_MALFORMED);
}
