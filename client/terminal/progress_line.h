/* Shows progress on stderr: bytes, rate and time left. On a terminal it redraws one line a few
 * times a second and wipes it at the end; elsewhere it prints a line every ten seconds, so that
 * short work prints nothing. */
#ifndef CLIENT_TERMINAL_PROGRESS_LINE_H
#define CLIENT_TERMINAL_PROGRESS_LINE_H

#include "client/work/progress.h"

/* Static; it fits what stderr is now. */
const struct progress_sink *progress_line(void);

#endif
