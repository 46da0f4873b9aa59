/* XML request bodies, over expat (its one home): events for each element. No DOCTYPE, so no
 * entities of the sender's making; depth, text, the number of elements and the length of tags, and
 * with it that of attributes, are capped. Any thread. */
#ifndef API_S3_XML_XML_READER_H
#define API_S3_XML_XML_READER_H

#include "base/error.h"
#include "base/span.h"

enum {
	XML_READER_DEPTH_MAX = 16,
	XML_READER_TEXT_MAX_BYTES = 8192,
	/* up to the last '>' in front of the next '<', be it in a text, a comment or a CDATA
	 * section */
	XML_READER_TAG_MAX_BYTES = 16 * 1024,
	XML_READER_ELEMENTS_MAX = 128 * 1024
};

struct xml_reader_events { /* both may be NULL; -1 with the error set ends the parse */
	/* depth 1 is the root. Names come without their namespace prefix. */
	int (*open)(void *owner, size_t depth, struct span name, struct error *err);
	/* `text` is the character data directly inside the element, white space kept, since the
	 * last child closed. */
	int (*close)(
		void *owner, size_t depth, struct span name, struct span text, struct error *err);
};

/* malformed_xml when it is not one well-formed document within the caps, or the event's own
 * error. */
int xml_reader_parse(
	struct span xml, const struct xml_reader_events *events, void *owner, struct error *err);

#endif
