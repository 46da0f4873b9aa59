/* Questions to a person at the terminal: asked on stderr and answered on stdin. Colours. */
#ifndef CLIENT_TERMINAL_TERMINAL_H
#define CLIENT_TERMINAL_TERMINAL_H

#include "base/buffer.h"

bool terminal_is_there(void); /* whether stdin and stderr are both a terminal */
/* Whether stdout is a terminal that takes colours, and NO_COLOR does not forbid them. */
bool terminal_has_colours(void);
/* Reads one line of stdin, without its end and the blanks before that. On a terminal it prints
 * `prompt` first and, when `hidden`, does not show the typed text; Ctrl-C ends the process. Fails
 * with invalid when the line is empty or exceeds the buffer's cap. */
int terminal_read_line(const char *prompt, bool hidden, struct buffer *out, struct error *err);

#endif
