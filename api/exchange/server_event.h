/* Server-sent events as text: an `event:` line and a `data:` line with one JSON object. */
#ifndef API_EXCHANGE_SERVER_EVENT_H
#define API_EXCHANGE_SERVER_EVENT_H

#include "base/buffer.h"
#include "base/format/json_node.h"

/* Prints the beginning up to the object's first member, and the end behind its last one. */
void server_event_begin(struct buffer *out, const char *event, struct json_writer *json);
void server_event_end(struct buffer *out, struct json_writer *json);
/* An event whose object has one member, or none with a NULL name. */
void server_event_print(struct buffer *out, const char *event, const char *name, struct span value);
void server_event_ping(struct buffer *out);

#endif
