/* A page of a listing has ten thousand elements, so an element costs one call to the buffer: its
 * room is reserved for the worst case, where each byte becomes an escape, and then filled with
 * plain stores. The names of open elements are kept on a stack for the closing tags. */
#include "api/s3/xml/xml_writer.h"

#include <string.h>

#include "base/clock.h"
#include "base/encode.h"

enum { ESCAPE_MAX_BYTES = 6, U64_DIGITS = 20 };

static const char hex_digits[] = "0123456789ABCDEF";

/* Carriage return, tab and line feed are escaped too, because a parser would normalise them. */
static const bool is_special[256] = {
	['&'] = true,
	['<'] = true,
	['>'] = true,
	['"'] = true,
	['\''] = true,
	[0x7f] = true,
	[0x00] = true,
	[0x01] = true,
	[0x02] = true,
	[0x03] = true,
	[0x04] = true,
	[0x05] = true,
	[0x06] = true,
	[0x07] = true,
	[0x08] = true,
	[0x09] = true,
	[0x0a] = true,
	[0x0b] = true,
	[0x0c] = true,
	[0x0d] = true,
	[0x0e] = true,
	[0x0f] = true,
	[0x10] = true,
	[0x11] = true,
	[0x12] = true,
	[0x13] = true,
	[0x14] = true,
	[0x15] = true,
	[0x16] = true,
	[0x17] = true,
	[0x18] = true,
	[0x19] = true,
	[0x1a] = true,
	[0x1b] = true,
	[0x1c] = true,
	[0x1d] = true,
	[0x1e] = true,
	[0x1f] = true,
};

static void push(struct xml_writer *writer, const char *name);
static void add_tag(struct buffer *out, const char *before, const char *name);
static uint8_t *put_tag(
	uint8_t *at, const char *before, size_t before_len, const char *name, size_t name_len);
static uint8_t *put(uint8_t *at, const char *text, size_t len);
static uint8_t *begin_element(
	struct xml_writer *writer, const char *name, size_t name_len, size_t content);
static void end_element(struct xml_writer *writer, const char *name, size_t name_len, uint8_t *at);
static uint8_t *put_escaped(uint8_t *at, struct span text);
static bool needs_escapes(struct span text);
static const char *escape_of(uint8_t byte);
static uint8_t *put_reference(uint8_t *at, uint8_t byte);

void xml_writer_begin(
	struct xml_writer *writer, struct buffer *out, const char *root, bool with_namespace)
{
	ASSERT(out != NULL && root != NULL);
	*writer = (struct xml_writer){.out = out};
	buffer_add_text(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<");
	buffer_add_text(out, root);
	buffer_add_text(
		out, with_namespace ? " xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">" : ">");
	push(writer, root);
}

void xml_writer_open(struct xml_writer *writer, const char *name)
{
	add_tag(writer->out, "<", name);
	push(writer, name);
}

void xml_writer_close(struct xml_writer *writer)
{
	ASSERT(writer->depth > 0);
	add_tag(writer->out, "</", writer->open[--writer->depth]);
}

void xml_writer_end(struct xml_writer *writer)
{
	ASSERT(writer->depth > 0);
	while (writer->depth > 0)
		xml_writer_close(writer);
}

void xml_writer_text(struct xml_writer *writer, const char *name, struct span value)
{
	const size_t name_len = strlen(name);
	uint8_t *const at = begin_element(writer, name, name_len, value.len * ESCAPE_MAX_BYTES);
	if (at != NULL)
		end_element(writer, name, name_len, put_escaped(at, value));
}

void xml_writer_percent(struct xml_writer *writer, const char *name, struct span value)
{
	add_tag(writer->out, "<", name);
	encode_percent(value, true, writer->out); /* leaves nothing that XML must escape */
	add_tag(writer->out, "</", name);
}

uint8_t *xml_writer_put_u64(uint8_t *at, uint64_t value)
{
	char digits[U64_DIGITS];
	size_t first = sizeof(digits);
	uint64_t rest = value;
	do {
		digits[--first] = (char)('0' + rest % 10);
		rest /= 10;
	} while (rest > 0);
	return put(at, digits + first, sizeof(digits) - first);
}

void xml_writer_u64(struct xml_writer *writer, const char *name, uint64_t value)
{
	const size_t name_len = strlen(name);
	uint8_t *const at = begin_element(writer, name, name_len, U64_DIGITS);
	if (at != NULL)
		end_element(writer, name, name_len, xml_writer_put_u64(at, value));
}

void xml_writer_bool(struct xml_writer *writer, const char *name, bool value)
{
	xml_writer_text(writer, name, span_text(value ? "true" : "false"));
}

void xml_writer_time(struct xml_writer *writer, const char *name, int64_t wall_ms)
{
	enum { ISO_BYTES = sizeof("1994-11-06T08:49:37.000Z") - 1 };
	char text[CLOCK_TEXT_BYTES];
	const size_t name_len = strlen(name);
	uint8_t *const at = begin_element(writer, name, name_len, ISO_BYTES);
	if (at == NULL)
		return;
	clock_format_iso(wall_ms, text);
	end_element(writer, name, name_len, put(at, text, ISO_BYTES));
}

void xml_writer_etag(struct xml_writer *writer, const char *name, const char *etag)
{
	static const char quote[] = "&quot;";
	const struct span text = span_text(etag);
	const size_t name_len = strlen(name);
	uint8_t *at = begin_element(
		writer, name, name_len, 2 * (sizeof(quote) - 1) + text.len * ESCAPE_MAX_BYTES);
	if (at == NULL)
		return;
	at = put(at, quote, sizeof(quote) - 1);
	at = put_escaped(at, text);
	at = put(at, quote, sizeof(quote) - 1);
	end_element(writer, name, name_len, at);
}

uint8_t *xml_writer_room(struct xml_writer *writer, size_t bytes)
{
	ASSERT(writer->depth > 0);
	return buffer_reserve(writer->out, bytes);
}

void xml_writer_advance(struct xml_writer *writer, const uint8_t *end)
{
	ASSERT(end >= writer->out->data + writer->out->len);
	buffer_commit(writer->out, (size_t)(end - (writer->out->data + writer->out->len)));
}

void xml_writer_content(struct xml_writer *writer, struct span text)
{
	ASSERT(writer->depth > 0);
	uint8_t *const at = buffer_reserve(writer->out, text.len * ESCAPE_MAX_BYTES);
	if (at != NULL)
		buffer_commit(writer->out, (size_t)(put_escaped(at, text) - at));
}

static void push(struct xml_writer *writer, const char *name)
{
	ASSERT(writer->depth < XML_WRITER_DEPTH_MAX);
	writer->open[writer->depth++] = name;
}

static void add_tag(struct buffer *out, const char *before, const char *name)
{
	const size_t before_len = strlen(before);
	const size_t name_len = strlen(name);
	uint8_t *const at = buffer_reserve(out, before_len + name_len + 1);
	if (at == NULL)
		return;
	put_tag(at, before, before_len, name, name_len);
	buffer_commit(out, before_len + name_len + 1);
}

static uint8_t *put_tag(
	uint8_t *at, const char *before, size_t before_len, const char *name, size_t name_len)
{
	at = put(at, before, before_len);
	at = put(at, name, name_len);
	*at++ = '>';
	return at;
}

static uint8_t *put(uint8_t *at, const char *text, size_t len)
{
	if (len > 0)
		memcpy(at, text, len);
	return at + len;
}

/* Stores <name> and returns its end, with room for `content` bytes and the closing tag after it;
 * NULL when the buffer is full. */
static uint8_t *begin_element(
	struct xml_writer *writer, const char *name, size_t name_len, size_t content)
{
	ASSERT(writer->depth > 0);
	uint8_t *const at = buffer_reserve(writer->out, 2 * name_len + sizeof("<></>") + content);
	return at != NULL ? put_tag(at, "<", 1, name, name_len) : NULL;
}

static void end_element(struct xml_writer *writer, const char *name, size_t name_len, uint8_t *at)
{
	xml_writer_advance(writer, put_tag(at, "</", 2, name, name_len));
}

/* Nearly every text needs no escapes and is copied as a whole. */
static uint8_t *put_escaped(uint8_t *at, struct span text)
{
	if (!needs_escapes(text))
		return put(at, (const char *)text.data, text.len);
	for (size_t i = 0; i < text.len; i++) {
		const uint8_t byte = text.data[i];
		const char *const escape = escape_of(byte);
		if (escape != NULL)
			at = put(at, escape, strlen(escape));
		else if (is_special[byte])
			at = put_reference(at, byte);
		else
			*at++ = byte;
	}
	return at;
}

static bool needs_escapes(struct span text)
{
	bool any = false;
	for (size_t i = 0; i < text.len; i++)
		any |= is_special[text.data[i]];
	return any;
}

static const char *escape_of(uint8_t byte)
{
	switch (byte) {
	case '&':
		return "&amp;";
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '"':
		return "&quot;";
	case '\'':
		return "&apos;";
	default:
		return NULL;
	}
}

/* "&#xA;" */
static uint8_t *put_reference(uint8_t *at, uint8_t byte)
{
	at = put(at, "&#x", 3);
	if (byte >= 0x10)
		*at++ = (uint8_t)hex_digits[byte >> 4];
	*at++ = (uint8_t)hex_digits[byte & 15];
	*at++ = ';';
	return at;
}
