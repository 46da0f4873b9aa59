/* A picture is written in one piece over the one before: each line ends with what erases its rest,
 * so nothing is blank in between. The size is asked for at each turn, so no signal handler is
 * needed. */
#include "client/watch/watch_screen.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "client/watch/watch_picture.h"

enum {
	PICTURE_MAX_BYTES = 4 * 1024 * 1024,
	WIDTH = 80,
	HEIGHT = 24,
	ESCAPE = 033,
	SEQUENCE_MS = 20
};

static void take_size(struct watch_screen *screen);
static void write_all(struct span bytes);
static int read_key(void);
static bool pass_sequence(void);

bool watch_screen_is_there(void)
{
	const char *const kind = getenv("TERM");
	return isatty(STDIN_FILENO) != 0 && isatty(STDOUT_FILENO) != 0 && kind != NULL &&
		strcmp(kind, "dumb") != 0;
}

/* Ctrl-C stays a signal; Ctrl-Z would leave the picture on the shell's screen. */
int watch_screen_begin(struct watch_screen *screen, struct error *err)
{
	*screen = (struct watch_screen){.width = WIDTH, .height = HEIGHT};
	if (tcgetattr(STDIN_FILENO, &screen->before) != 0)
		return error_set_errno(err, "reading the terminal's settings");
	struct termios now = screen->before;
	now.c_lflag &= ~(tcflag_t)(ECHO | ICANON);
	now.c_cc[VMIN] = 1;
	now.c_cc[VTIME] = 0;
	now.c_cc[VSUSP] = _POSIX_VDISABLE;
	now.c_cc[VQUIT] = _POSIX_VDISABLE;
	if (tcsetattr(STDIN_FILENO, TCSAFLUSH, &now) != 0)
		return error_set_errno(err, "setting the terminal");
	buffer_init(&screen->shown, PICTURE_MAX_BYTES);
	take_size(screen);
	write_all(span_text("\033[?1049h\033[?25l\033[?7l\033[2J"));
	return 0;
}

void watch_screen_end(struct watch_screen *screen)
{
	write_all(span_text("\033[m\033[?7h\033[?25h\033[?1049l"));
	tcsetattr(STDIN_FILENO, TCSAFLUSH, &screen->before);
	buffer_release(&screen->shown);
}

int watch_screen_key(struct watch_screen *screen, int ms)
{
	struct pollfd poll_of = {.fd = STDIN_FILENO, .events = POLLIN};
	const int ready = poll(&poll_of, 1, ms);
	take_size(screen);
	if (ready < 0 && errno != EINTR)
		return -1;
	return ready > 0 ? read_key() : 0;
}

void watch_screen_show(struct watch_screen *screen, struct span picture)
{
	struct buffer out;
	if (span_equal(picture, buffer_span(&screen->shown)))
		return;
	buffer_init(&out, 2 * (size_t)PICTURE_MAX_BYTES);
	buffer_add_text(&out, "\033[?2026h\033[H");
	/* without the end of the last line, which would scroll */
	const size_t end = strlen(WATCH_SCREEN_END) - strlen("\033[K");
	buffer_add_span(&out, span_slice(picture, 0, picture.len > end ? picture.len - end : 0));
	buffer_add_text(&out, "\033[J\033[?2026l");
	write_all(buffer_span(&out));
	buffer_release(&out);
	buffer_reset(&screen->shown);
	buffer_add_span(&screen->shown, picture);
}

/* A new size means a new picture. */
static void take_size(struct watch_screen *screen)
{
	struct winsize size = {0};
	const bool is_known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
	const size_t width = is_known ? size.ws_col : WIDTH;
	const size_t height = is_known ? size.ws_row : HEIGHT;
	if (width != screen->width || height != screen->height)
		buffer_reset(&screen->shown);
	screen->width = width < WATCH_WIDTH_MIN ? WATCH_WIDTH_MIN
		: width > WATCH_WIDTH_MAX       ? WATCH_WIDTH_MAX
						: width;
	screen->height = height > 0 ? height : 1;
}

static void write_all(struct span bytes)
{
	while (bytes.len > 0) {
		const ssize_t wrote = write(STDOUT_FILENO, bytes.data, bytes.len);
		if (wrote < 0 && errno != EINTR)
			return;
		bytes = span_slice(bytes, wrote > 0 ? (size_t)wrote : 0, bytes.len);
	}
}

static int read_key(void)
{
	unsigned char byte;
	if (read(STDIN_FILENO, &byte, 1) != 1)
		return -1;
	return byte == ESCAPE && pass_sequence() ? 0 : byte;
}

/* Reads what follows Esc at once: the bytes of a key such as an arrow, up to its last. */
static bool pass_sequence(void)
{
	struct pollfd poll_of = {.fd = STDIN_FILENO, .events = POLLIN};
	unsigned char byte = 0;
	bool is_one = false;
	while (poll(&poll_of, 1, SEQUENCE_MS) > 0 && read(STDIN_FILENO, &byte, 1) == 1) {
		const bool begins = !is_one && (byte == '[' || byte == 'O');
		is_one = true;
		if (!begins && byte >= '@' && byte <= '~')
			break;
	}
	return is_one;
}
