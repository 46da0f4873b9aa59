#include "server/raw_chunk.h"

#include <stdint.h>

static bool ends_line(const char *text, size_t len);
static bool is_size_line(const char *line, size_t len);
static bool is_hex(char byte);

bool raw_chunk_is_plain(const char *body, const char *piece, size_t most)
{
	/* Subtracted as numbers, because the pointers may belong to different buffers. */
	const size_t len = (uintptr_t)piece - (uintptr_t)body;
	if (len == 0)
		return true;
	if (len > most || !ends_line(body, len))
		return false;
	size_t line = len - 2;
	while (line > 0 && body[line - 1] != '\n')
		line--;
	return is_size_line(body + line, len - 2 - line) && (line == 0 || ends_line(body, line));
}

static bool ends_line(const char *text, size_t len)
{
	return len >= 2 && text[len - 2] == '\r' && text[len - 1] == '\n';
}

/* A size line begins with a digit and has no control characters in its extension. */
static bool is_size_line(const char *line, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if ((uint8_t)line[i] < ' ' || line[i] == 0x7f)
			return false;
	return len > 0 && is_hex(line[0]);
}

static bool is_hex(char byte)
{
	return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'f') ||
		(byte >= 'A' && byte <= 'F');
}
