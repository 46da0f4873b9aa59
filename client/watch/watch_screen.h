/* The terminal while `deltabucket watch` shows its picture in place: the alternate screen, keys
 * without Enter, the cursor hidden. What was there before comes back at the end. One thread. */
#ifndef CLIENT_WATCH_WATCH_SCREEN_H
#define CLIENT_WATCH_WATCH_SCREEN_H

#include <termios.h>

#include "base/buffer.h"

struct watch_screen {
	struct termios before;
	size_t width, height;
	struct buffer shown; /* the picture that is there */
};

/* Whether stdin and stdout are a terminal that can be drawn on. */
bool watch_screen_is_there(void);
int watch_screen_begin(struct watch_screen *screen, struct error *err);
void watch_screen_end(struct watch_screen *screen);
/* Waits up to `ms` for a key. Gives it, or 0 when none came; -1 when the terminal is gone. Notices
 * that the size has changed. An arrow or another key of several bytes gives '\033' only when it is
 * Esc. */
int watch_screen_key(struct watch_screen *screen, int ms);
/* Shows the picture, whose lines end with WATCH_SCREEN_END. What is there already is not sent. */
#define WATCH_SCREEN_END "\033[K\r\n"
void watch_screen_show(struct watch_screen *screen, struct span picture);

#endif
