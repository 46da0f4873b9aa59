/* Reads XML documents that peers sent, with expat, and reports each element as events. A DOCTYPE is
 * refused, so a sender cannot define entities. Depth, text, the number of elements, and the length
 * of tags and so of attributes are capped. Any thread. */
#ifndef BASE_FORMAT_XML_READER_H
#define BASE_FORMAT_XML_READER_H

#include "base/error.h"
#include "base/span.h"

enum {
	XML_READER_DEPTH_MAX = 16,
	XML_READER_TEXT_MAX_BYTES = 8192,
	/* from a '<' to the last '>' before the next '<', even inside a text, a comment or a CDATA
	 * section */
	XML_READER_TAG_MAX_BYTES = 16 * 1024,
	XML_READER_ELEMENTS_MAX = 128 * 1024
};

struct xml_reader_events { /* both may be NULL; -1 with the error set ends the parse */
	/* The root has depth 1. Names come without their namespace prefix. */
	int (*open)(void *owner, size_t depth, struct span name, struct error *err);
	/* `text` is the character data directly inside the element after its last child, with its
	 * white space. */
	int (*close)(
		void *owner, size_t depth, struct span name, struct span text, struct error *err);
};

/* malformed_xml when the body is not one well-formed document within the caps; too_large over
 * INT_MAX bytes; no_memory; or the error of an event. */
int xml_reader_parse(
	struct span xml, const struct xml_reader_events *events, void *owner, struct error *err);

#endif
