/* The faults that the server knows of itself, a line each: the body of /-/ready behind its first
 * line. */
#ifndef API_LIVE_SERVER_WARNINGS_H
#define API_LIVE_SERVER_WARNINGS_H

#include "api/exchange/exchange.h"
#include "base/format/json_node.h"

/* Adds the whole body of /-/ready. */
void server_warnings_print(struct exchange *exchange, struct buffer *out);
/* Adds the warnings as a JSON array of lines. */
void server_warnings_list(struct exchange *exchange, const char *name, struct json_writer *json);

#endif
