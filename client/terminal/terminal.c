/* A hidden line is read byte by byte with the terminal's echo, line editing and signals switched
 * off. Ctrl-C then arrives as a byte, so the process always restores the terminal before it ends;
 * backspace and Ctrl-D must be handled here. */
#include "client/terminal/terminal.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

enum { CTRL_C = 3, CTRL_D = 4, BACKSPACE = 8, DELETE = 127 };

static int read_hidden(struct buffer *out, struct error *err);
static int read_line(bool raw, struct buffer *out, struct error *err);
static int read_byte(char *out, struct error *err);
static int take_byte(char byte, struct buffer *out, struct error *err);
static void drop_last(struct buffer *out);
static int trim(struct buffer *out, struct error *err);

bool terminal_is_there(void)
{
	return isatty(STDIN_FILENO) != 0 && isatty(STDERR_FILENO) != 0;
}

bool terminal_has_colours(void)
{
	const char *const unwanted = getenv("NO_COLOR");
	const char *const kind = getenv("TERM");
	return isatty(STDOUT_FILENO) != 0 && (unwanted == NULL || unwanted[0] == '\0') &&
		kind != NULL && strcmp(kind, "dumb") != 0;
}

int terminal_read_line(const char *prompt, bool hidden, struct buffer *out, struct error *err)
{
	const bool terminal = terminal_is_there();
	if (terminal) {
		fputs(prompt, stderr);
		fflush(stderr);
	}
	const int result = terminal && hidden ? read_hidden(out, err) : read_line(false, out, err);
	return result == 0 ? trim(out, err) : -1;
}

static int read_hidden(struct buffer *out, struct error *err)
{
	struct termios before;
	if (tcgetattr(STDIN_FILENO, &before) != 0)
		return error_set_errno(err, "reading the terminal's settings");
	struct termios silent = before;
	silent.c_lflag &= ~(tcflag_t)(ECHO | ICANON | ISIG);
	silent.c_cc[VMIN] = 1;
	silent.c_cc[VTIME] = 0;
	if (tcsetattr(STDIN_FILENO, TCSAFLUSH, &silent) != 0)
		return error_set_errno(err, "hiding what is typed");
	const int result = read_line(true, out, err);
	tcsetattr(STDIN_FILENO, TCSAFLUSH, &before);
	fputc('\n', stderr);
	if (result != 0 && err->kind == ERROR_BUSY)
		raise(SIGINT);
	return result;
}

static int read_line(bool raw, struct buffer *out, struct error *err)
{
	char byte;
	for (;;) {
		const int got = read_byte(&byte, err);
		if (got < 0)
			return -1;
		if (got == 0 || byte == '\n' || (raw && (byte == '\r' || byte == CTRL_D)))
			return 0;
		if (!raw)
			buffer_add_byte(out, (uint8_t)byte);
		else if (take_byte(byte, out, err) != 0)
			return -1;
	}
}

/* 1, or 0 at the end of stdin. */
static int read_byte(char *out, struct error *err)
{
	ssize_t got;
	do
		got = read(STDIN_FILENO, out, 1);
	while (got < 0 && errno == EINTR);
	return got < 0 ? error_set_errno(err, "reading stdin") : (int)got;
}

/* Edits the line as a terminal in its normal mode does. -1 with busy for Ctrl-C. */
static int take_byte(char byte, struct buffer *out, struct error *err)
{
	if (byte == CTRL_C)
		return error_set(err, ERROR_BUSY, "interrupted");
	if (byte == BACKSPACE || byte == DELETE)
		drop_last(out);
	else
		buffer_add_byte(out, (uint8_t)byte);
	return 0;
}

static void drop_last(struct buffer *out)
{
	if (out->len > 0)
		out->data[--out->len] = '\0';
}

static int trim(struct buffer *out, struct error *err)
{
	while (out->len > 0 &&
		(out->data[out->len - 1] == '\r' || out->data[out->len - 1] == ' ' ||
			out->data[out->len - 1] == '\t'))
		drop_last(out);
	if (buffer_failed(out))
		return error_set(err, ERROR_INVALID, "the line on stdin is too long");
	return out->len > 0 ? 0 : error_set(err, ERROR_INVALID, "the line on stdin is empty");
}
