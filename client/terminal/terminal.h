/* Questions to a person at the terminal: asked on stderr, answered on stdin. */
#ifndef CLIENT_TERMINAL_TERMINAL_H
#define CLIENT_TERMINAL_TERMINAL_H

#include "base/buffer.h"

bool terminal_is_there(void); /* stdin and stderr are both one */
/* One line of stdin without its end and blanks around it. On a terminal `prompt` comes first and,
 * when `hidden`, nothing that is typed is shown; Ctrl-C ends the process. invalid when there is
 * none, or it is over the buffer's cap. */
int terminal_read_line(const char *prompt, bool hidden, struct buffer *out, struct error *err);

#endif
