/* The meaning of the program's exit status. The table of rows is printed by `deltabucket help` and
 * repeated in docs/COMMANDS.md. Scripts rely on the numbers. */
#ifndef CLIENT_TERMINAL_EXIT_CODE_H
#define CLIENT_TERMINAL_EXIT_CODE_H

#include <stddef.h>

#include "base/error.h"

enum exit_code {
	EXIT_CODE_OK = 0,
	EXIT_CODE_FAILURE = 1,
	EXIT_CODE_USAGE = 2,
	EXIT_CODE_UNREACHABLE = 3,
	EXIT_CODE_DENIED = 4,
	EXIT_CODE_NOT_FOUND = 5,
	EXIT_CODE_CONFLICT = 6,
	EXIT_CODE_DAMAGED = 7,
	EXIT_CODE_DISK_FULL = 8,
	EXIT_CODE_BUSY = 9,
	EXIT_CODE_NOT_READY = 10,
	EXIT_CODE_WRONG_BASE = 11,
	EXIT_CODE_WRONG_RESULT = 12,
	EXIT_CODE_MALFORMED = 13,
	EXIT_CODE_UNSUPPORTED = 14,
	EXIT_CODE_OTHER_SCHEMA = 15,
	EXIT_CODE_SIGNAL_BASE = 128 /* plus the signal: 130 after SIGINT, 143 after SIGTERM */
};

struct exit_code_row {
	enum exit_code code;
	const char *meaning;
};
const struct exit_code_row *exit_code_rows(size_t *out_count);

enum exit_code exit_code_of(enum error_kind kind);

#endif
