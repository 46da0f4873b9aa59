/* Writes XML replies: elements, text and numbers, escaped where needed. Everything goes straight
 * into a buffer; the caller tests the buffer's failed flag once, at the end. One thread at a
 * time. */
#ifndef API_S3_XML_XML_WRITER_H
#define API_S3_XML_XML_WRITER_H

#include "base/buffer.h"

enum { XML_WRITER_DEPTH_MAX = 8 };

struct xml_writer {
	struct buffer *out;
	const char *open[XML_WRITER_DEPTH_MAX]; /* static names */
	size_t depth;
};

/* Writes the prolog and the opening tag of the root, with the S3 namespace when `with_namespace`.
 * All names must be static text. */
void xml_writer_begin(
	struct xml_writer *writer, struct buffer *out, const char *root, bool with_namespace);
void xml_writer_open(struct xml_writer *writer, const char *name);
void xml_writer_close(struct xml_writer *writer);
/* Closes all open elements, the root last. */
void xml_writer_end(struct xml_writer *writer);

/* <name>value</name>. Characters that XML 1.0 cannot carry go out as &#xN;, as S3 does. */
void xml_writer_text(struct xml_writer *writer, const char *name, struct span value);
/* The same, percent-encoded except for '/', as encoding-type=url asks. */
void xml_writer_percent(struct xml_writer *writer, const char *name, struct span value);
void xml_writer_u64(struct xml_writer *writer, const char *name, uint64_t value);
void xml_writer_bool(struct xml_writer *writer, const char *name, bool value);
/* <name>2026-01-02T03:04:05.000Z</name> */
void xml_writer_time(struct xml_writer *writer, const char *name, int64_t wall_ms);
/* For rows that a page has by the thousand: xml_writer_room gives room for `bytes` of finished XML,
 * or NULL when the buffer is full. xml_writer_advance makes those up to `end` part of the reply. */
uint8_t *xml_writer_room(struct xml_writer *writer, size_t bytes);
void xml_writer_advance(struct xml_writer *writer, const uint8_t *end);
/* Stores the digits of a number, at most 20, and returns their end. */
uint8_t *xml_writer_put_u64(uint8_t *at, uint64_t value);
/* Character data of the open element. */
void xml_writer_content(struct xml_writer *writer, struct span text);
/* Adds the quotes. */
void xml_writer_etag(struct xml_writer *writer, const char *name, const char *etag);

#endif
