/* The signal tells the address that could not be read, and /proc/self/maps which file lies there.
 * So the file is named although nothing keeps a list of mapped files. */
#include "client/terminal/cut_file.h"

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "client/terminal/exit_code.h"

enum { LINE_BYTES = 8192, BLOCK_BYTES = 4096 };

static const char NAME[] = "deltabucket: ";
static const char SOME_FILE[] = "a file";
static const char SENTENCE[] =
	" became shorter while it was read, or its disk failed; leave the files of a command unchanged"
	" until it has ended\n";

static void cut_file_end_process(int signal, siginfo_t *facts, void *context);
static size_t find_line(uintptr_t address, char *line);
static bool covers(const char *line, size_t len, uintptr_t address);
static size_t read_hex(const char *text, size_t len, uintptr_t *out);
static void say(const char *text, size_t len);

void cut_file_guard(void)
{
	struct sigaction action = {.sa_sigaction = cut_file_end_process, .sa_flags = SA_SIGINFO};
	sigemptyset(&action.sa_mask);
	sigaction(SIGBUS, &action, NULL);
}

/* A signal handler: it and its helpers call only async-signal-safe functions. */
static void cut_file_end_process(int signal, siginfo_t *facts, void *context)
{
	char line[LINE_BYTES];
	const size_t len = find_line((uintptr_t)facts->si_addr, line);
	const char *const path = len > 0 ? memchr(line, '/', len) : NULL;
	(void)signal;
	(void)context;
	say(NAME, sizeof(NAME) - 1);
	if (path != NULL)
		say(path, (size_t)(line + len - path));
	else
		say(SOME_FILE, sizeof(SOME_FILE) - 1);
	say(SENTENCE, sizeof(SENTENCE) - 1);
	_exit(EXIT_CODE_MALFORMED);
}

/* Finds the line of the mapping that the address lies in, at most LINE_BYTES of it. Returns its
 * length; 0: not found. */
static size_t find_line(uintptr_t address, char *line)
{
	char block[BLOCK_BYTES];
	size_t len = 0;
	bool found = false;
	ssize_t got = 1;
	const int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && !found && (got = read(fd, block, sizeof(block))) > 0)
		for (ssize_t i = 0; i < got && !found; i++) {
			found = block[i] == '\n' && covers(line, len, address);
			if (block[i] == '\n')
				len = found ? len : 0;
			else if (len < LINE_BYTES)
				line[len++] = block[i];
		}
	if (fd >= 0)
		close(fd);
	return found ? len : 0;
}

/* A line begins with the addresses of the mapping's begin and end, in hex: "7f00-8f00 ". */
static bool covers(const char *line, size_t len, uintptr_t address)
{
	uintptr_t begin;
	uintptr_t end;
	const size_t at = read_hex(line, len, &begin);
	if (at == len || line[at] != '-')
		return false;
	(void)read_hex(line + at + 1, len - at - 1, &end);
	return address >= begin && address < end;
}

/* Returns how many digits there were. */
static size_t read_hex(const char *text, size_t len, uintptr_t *out)
{
	static const char digits[] = "0123456789abcdef";
	size_t at = 0;
	const char *digit;
	*out = 0;
	while (at < len && (digit = memchr(digits, text[at], sizeof(digits) - 1)) != NULL) {
		*out = *out * 16 + (uintptr_t)(digit - digits);
		at++;
	}
	return at;
}

static void say(const char *text, size_t len)
{
	if (write(STDERR_FILENO, text, len) < 0)
		_exit(EXIT_CODE_MALFORMED);
}
