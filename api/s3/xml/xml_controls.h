/* Control characters in XML. XML 1.0 has no place for most of them, not even as references, but
 * keys may hold them: listings of S3 write them as "&#x1;" all the same, and clients send them so,
 * or as they are. A document is hidden before the reader gets it (base/format/xml_reader.h), and
 * each text that may hold a key is shown afterwards. */
#ifndef API_S3_XML_CONTROLS_H
#define API_S3_XML_CONTROLS_H

#include "base/arena.h"
#include "base/error.h"
#include "base/span.h"

struct xml_controls {
	struct span xml; /* for the reader: the document, or a copy in the arena */
	bool are_hidden; /* then xml_controls_show must see each text */
};
/* Only texts count, not tags, comments and CDATA sections. A document without control characters,
 * or with a NUL byte, as in UTF-16, stays as it is. Returns 0, or -1 with no_memory. */
int xml_controls_hide(
	struct span xml, struct arena *arena, struct xml_controls *out, struct error *err);
/* The text as the client meant it, in the arena; {NULL,0} when that is full. */
struct span xml_controls_show(
	const struct xml_controls *controls, struct span text, struct arena *arena);

#endif
