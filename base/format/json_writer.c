/* A depth and one bit for each level, which says whether a comma is due, are the whole state: names
 * and values go straight into the buffer. */
#include "base/format/json_node.h"

#include <inttypes.h>

enum { DEPTH_MAX = 64 };

static void open_level(struct json_writer *writer, const char *name, char bracket);
static void begin_value(struct json_writer *writer, const char *name);
static void add_quoted(struct buffer *out, struct span text);
static bool is_plain(uint8_t byte);
static void add_escaped(struct buffer *out, uint8_t byte);
static char short_escape(uint8_t byte);

void json_writer_init(struct json_writer *writer, struct buffer *out)
{
	ASSERT(out != NULL);
	*writer = (struct json_writer){.out = out};
}

void json_writer_object(struct json_writer *writer, const char *name)
{
	open_level(writer, name, '{');
}

void json_writer_array(struct json_writer *writer, const char *name)
{
	open_level(writer, name, '[');
}

void json_writer_end(struct json_writer *writer, char bracket)
{
	ASSERT(writer->depth > 0 && (bracket == '}' || bracket == ']'));
	writer->depth--;
	buffer_add_byte(writer->out, (uint8_t)bracket);
}

void json_writer_text(struct json_writer *writer, const char *name, struct span text)
{
	begin_value(writer, name);
	add_quoted(writer->out, text);
}

void json_writer_u64(struct json_writer *writer, const char *name, uint64_t value)
{
	begin_value(writer, name);
	buffer_format(writer->out, "%" PRIu64, value);
}

void json_writer_i64(struct json_writer *writer, const char *name, int64_t value)
{
	begin_value(writer, name);
	buffer_add_number(writer->out, value);
}

void json_writer_bool(struct json_writer *writer, const char *name, bool value)
{
	begin_value(writer, name);
	buffer_add_text(writer->out, value ? "true" : "false");
}

void json_writer_null(struct json_writer *writer, const char *name)
{
	begin_value(writer, name);
	buffer_add_text(writer->out, "null");
}

void json_writer_raw(struct json_writer *writer, const char *name, struct span json)
{
	begin_value(writer, name);
	buffer_add_span(writer->out, json);
}

static void open_level(struct json_writer *writer, const char *name, char bracket)
{
	begin_value(writer, name);
	ASSERT(writer->depth < DEPTH_MAX);
	writer->depth++;
	writer->has_member &= ~(UINT64_C(1) << (writer->depth - 1));
	buffer_add_byte(writer->out, (uint8_t)bracket);
}

/* Adds the comma and the name before a value. */
static void begin_value(struct json_writer *writer, const char *name)
{
	const uint64_t level = UINT64_C(1) << (writer->depth > 0 ? writer->depth - 1 : 0);
	if (writer->depth > 0 && (writer->has_member & level) != 0)
		buffer_add_byte(writer->out, ',');
	if (writer->depth > 0)
		writer->has_member |= level;
	if (name == NULL)
		return;
	add_quoted(writer->out, span_text(name));
	buffer_add_byte(writer->out, ':');
}

/* Each byte that is not UTF-8 becomes U+FFFD, so that the output always parses. */
static void add_quoted(struct buffer *out, struct span text)
{
	buffer_add_byte(out, '"');
	for (size_t at = 0; at < text.len;) {
		size_t plain = at;
		while (plain < text.len && is_plain(text.data[plain]))
			plain++;
		buffer_add(out, text.data + at, plain - at);
		at = plain;
		if (at == text.len)
			break;
		const size_t len = span_utf8_length(span_slice(text, at, 4));
		if (len > 1)
			buffer_add(out, text.data + at, len);
		else if (len == 1)
			add_escaped(out, text.data[at]);
		else
			buffer_add_text(out, "\xef\xbf\xbd");
		at += len > 0 ? len : 1;
	}
	buffer_add_byte(out, '"');
}

static bool is_plain(uint8_t byte)
{
	return byte >= 0x20 && byte != '"' && byte != '\\' && byte < 0x7f;
}

static void add_escaped(struct buffer *out, uint8_t byte)
{
	const char escape = short_escape(byte);
	if (escape != '\0')
		buffer_add(out, (const char[]){'\\', escape}, 2);
	else
		buffer_format(out, "\\u%04x", byte);
}

/* Returns the second character of the short escapes that JSON has; NUL for all other bytes. */
static char short_escape(uint8_t byte)
{
	switch (byte) {
	case '"':
		return '"';
	case '\\':
		return '\\';
	case '\b':
		return 'b';
	case '\f':
		return 'f';
	case '\n':
		return 'n';
	case '\r':
		return 'r';
	case '\t':
		return 't';
	default:
		return '\0';
	}
}
