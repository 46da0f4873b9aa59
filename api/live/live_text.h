/* Server-sent events as text: an `event:` line and a `data:` line with one JSON object. */
#ifndef API_LIVE_LIVE_TEXT_H
#define API_LIVE_LIVE_TEXT_H

#include "base/buffer.h"
#include "base/format/json_node.h"

/* Prints the beginning up to the object's first member, and the end behind its last one. */
void live_text_begin(struct buffer *out, const char *event, struct json_writer *json);
void live_text_end(struct buffer *out, struct json_writer *json);
/* An event whose object has one member, or none with a NULL name. */
void live_text_event(struct buffer *out, const char *event, const char *name, struct span value);
void live_text_ping(struct buffer *out);

#endif
