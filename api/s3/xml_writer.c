#include "api/s3/xml_writer.h"

#include <inttypes.h>

#include "base/clock.h"

static const char *escape_of(const uint8_t byte)
{
	switch (byte) {
	case '&': return "&amp;";
	case '<': return "&lt;";
	case '>': return "&gt;";
	case '"': return "&quot;";
	case '\'': return "&apos;";
	default: return NULL;
	}
}

/* Runs of plain bytes are added whole. Carriage return, tab and line feed are escaped too: a parser would normalise them. */
static void add_escaped(struct buffer *const out, const struct span text)
{
	size_t plain_from = 0;
	for (size_t i = 0; i < text.len; i++) {
		const uint8_t byte = text.data[i];
		const char *const escape = escape_of(byte);
		if (escape == NULL && byte >= 0x20 && byte != 0x7f)
			continue;
		buffer_add(out, text.data + plain_from, i - plain_from);
		plain_from = i + 1;
		if (escape != NULL)
			buffer_add_text(out, escape);
		else
			buffer_format(out, "&#x%X;", byte);
	}
	if (text.len > plain_from)
		buffer_add(out, text.data + plain_from, text.len - plain_from);
}

static void add_tag(struct buffer *const out, const char *const before, const char *const name)
{
	buffer_add_text(out, before);
	buffer_add_text(out, name);
	buffer_add_byte(out, '>');
}

static void push(struct xml_writer *const writer, const char *const name)
{
	ASSERT(writer->depth < XML_WRITER_DEPTH_MAX);
	writer->open[writer->depth++] = name;
}

void xml_writer_begin(struct xml_writer *const writer, struct buffer *const out, const char *const root, const bool with_namespace)
{
	*writer = (struct xml_writer){.out = out};
	buffer_add_text(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<");
	buffer_add_text(out, root);
	buffer_add_text(out, with_namespace ? " xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">" : ">");
	push(writer, root);
}

void xml_writer_open(struct xml_writer *const writer, const char *const name)
{
	add_tag(writer->out, "<", name);
	push(writer, name);
}

void xml_writer_close(struct xml_writer *const writer)
{
	ASSERT(writer->depth > 0);
	add_tag(writer->out, "</", writer->open[--writer->depth]);
}

void xml_writer_end(struct xml_writer *const writer)
{
	while (writer->depth > 0)
		xml_writer_close(writer);
}

void xml_writer_text(struct xml_writer *const writer, const char *const name, const struct span value)
{
	add_tag(writer->out, "<", name);
	add_escaped(writer->out, value);
	add_tag(writer->out, "</", name);
}

void xml_writer_u64(struct xml_writer *const writer, const char *const name, const uint64_t value)
{
	add_tag(writer->out, "<", name);
	buffer_format(writer->out, "%" PRIu64, value);
	add_tag(writer->out, "</", name);
}

void xml_writer_bool(struct xml_writer *const writer, const char *const name, const bool value)
{
	xml_writer_text(writer, name, span_text(value ? "true" : "false"));
}

void xml_writer_time(struct xml_writer *const writer, const char *const name, const int64_t wall_ms)
{
	char text[CLOCK_TEXT_BYTES];
	clock_format_iso(wall_ms, text);
	xml_writer_text(writer, name, span_text(text));
}

void xml_writer_etag(struct xml_writer *const writer, const char *const name, const char *const etag)
{
	add_tag(writer->out, "<", name);
	buffer_add_text(writer->out, "&quot;");
	add_escaped(writer->out, span_text(etag));
	buffer_add_text(writer->out, "&quot;");
	add_tag(writer->out, "</", name);
}

void xml_writer_content(struct xml_writer *const writer, const struct span text)
{
	add_escaped(writer->out, text);
}
