/* Expat calls xml_reader_on_* for each element, text and DOCTYPE. The first failure is kept in
 * `err` and stops expat. Expat may still close the element that it is at, so the callbacks for
 * elements do nothing once an error is set. Tags are measured before expat sees them, because expat
 * collects all attributes of a tag and takes long for very many. */
#include "base/format/xml_reader.h"

#include <expat.h>
#include <limits.h>
#include <string.h>

#include "base/buffer.h"

struct xml_reader {
	XML_Parser parser;
	const struct xml_reader_events *events;
	void *owner;
	size_t depth;
	size_t elements;
	struct buffer text;
	struct error err; /* kind not none: this file stopped the parse */
};

static int check_tags(struct span xml, struct error *err);
static size_t measure_tag(struct span piece);
static void xml_reader_on_open(void *cookie, const char *name, const char **attributes);
static void stop(struct xml_reader *reader);
static struct span local_name(const char *name);
static void xml_reader_on_close(void *cookie, const char *name);
static void xml_reader_on_text(void *cookie, const char *text, int len);
static void xml_reader_on_doctype(
	void *cookie, const char *name, const char *system_id, const char *public_id, int internal);

int xml_reader_parse(
	struct span xml, const struct xml_reader_events *events, void *owner, struct error *err)
{
	ASSERT(events != NULL);
	if (xml.len > INT_MAX)
		return error_set(err, ERROR_TOO_LARGE, "The XML body is over %d bytes.", INT_MAX);
	if (check_tags(xml, err) != 0)
		return -1;
	struct xml_reader reader = {.events = events, .owner = owner};
	reader.parser = XML_ParserCreate(NULL);
	if (reader.parser == NULL)
		return error_set(
			err, ERROR_NO_MEMORY, "There is no memory to read the XML body.");
	buffer_init(&reader.text, XML_READER_TEXT_MAX_BYTES);
	XML_SetUserData(reader.parser, &reader);
	XML_SetElementHandler(reader.parser, xml_reader_on_open, xml_reader_on_close);
	XML_SetCharacterDataHandler(reader.parser, xml_reader_on_text);
	XML_SetStartDoctypeDeclHandler(reader.parser, xml_reader_on_doctype);

	const enum XML_Status status = XML_Parse(
		reader.parser, xml.len > 0 ? (const char *)xml.data : "", (int)xml.len, XML_TRUE);
	int result = 0;
	if (reader.err.kind != ERROR_NONE) {
		*err = reader.err;
		result = -1;
	} else if (status != XML_STATUS_OK) {
		result = error_set(err, ERROR_MALFORMED_XML,
			"The XML body is not well-formed: %s in line %lu.",
			XML_ErrorString(XML_GetErrorCode(reader.parser)),
			(unsigned long)XML_GetCurrentLineNumber(reader.parser));
	}
	buffer_release(&reader.text);
	XML_ParserFree(reader.parser);
	return result;
}

static int check_tags(struct span xml, struct error *err)
{
	struct span rest = xml;
	struct span piece;
	while (span_split(&rest, '<', &piece))
		if (measure_tag(piece) > XML_READER_TAG_MAX_BYTES)
			return error_set(err, ERROR_MALFORMED_XML,
				"A tag of the XML body is over %d bytes.",
				XML_READER_TAG_MAX_BYTES);
	return 0;
}

/* The length up to the last '>' of a piece between two '<'. The tag ends there or before, whatever
 * its attributes hold. 0: the piece has no '>'. */
static size_t measure_tag(struct span piece)
{
	size_t len = piece.len;
	while (len > 0 && piece.data[len - 1] != '>')
		len--;
	return len;
}

static void xml_reader_on_open(void *cookie, const char *name, const char **attributes)
{
	struct xml_reader *const reader = cookie;
	(void)attributes;
	if (reader->err.kind != ERROR_NONE)
		return;
	if (++reader->depth > XML_READER_DEPTH_MAX) {
		error_set(&reader->err, ERROR_MALFORMED_XML,
			"The XML body nests deeper than %d elements.", XML_READER_DEPTH_MAX);
		stop(reader);
		return;
	}
	if (++reader->elements > XML_READER_ELEMENTS_MAX) {
		error_set(&reader->err, ERROR_MALFORMED_XML, "The XML body has over %d elements.",
			XML_READER_ELEMENTS_MAX);
		stop(reader);
		return;
	}
	buffer_reset(&reader->text);
	if (reader->events->open != NULL &&
		reader->events->open(
			reader->owner, reader->depth, local_name(name), &reader->err) != 0)
		stop(reader);
}

static void stop(struct xml_reader *reader)
{
	ASSERT(reader->err.kind != ERROR_NONE);
	XML_StopParser(reader->parser, XML_FALSE);
}

static struct span local_name(const char *name)
{
	const char *const colon = strchr(name, ':');
	return span_text(colon != NULL ? colon + 1 : name);
}

static void xml_reader_on_close(void *cookie, const char *name)
{
	struct xml_reader *const reader = cookie;
	if (reader->err.kind != ERROR_NONE)
		return;
	ASSERT(reader->depth > 0);
	if (buffer_failed(&reader->text)) {
		error_set(&reader->err, ERROR_MALFORMED_XML,
			"The text of the XML element %.64s is over %d bytes.", name,
			XML_READER_TEXT_MAX_BYTES);
		stop(reader);
		return;
	}
	if (reader->events->close != NULL &&
		reader->events->close(reader->owner, reader->depth, local_name(name),
			buffer_span(&reader->text), &reader->err) != 0)
		stop(reader);
	buffer_reset(&reader->text);
	reader->depth--;
}

static void xml_reader_on_text(void *cookie, const char *text, int len)
{
	struct xml_reader *const reader = cookie;
	ASSERT(len >= 0);
	buffer_add(&reader->text, text, (size_t)len);
}

static void xml_reader_on_doctype(
	void *cookie, const char *name, const char *system_id, const char *public_id, int internal)
{
	struct xml_reader *const reader = cookie;
	(void)name;
	(void)system_id;
	(void)public_id;
	(void)internal;
	error_set(&reader->err, ERROR_MALFORMED_XML,
		"The XML body has a DOCTYPE, which is not accepted.");
	stop(reader);
}
