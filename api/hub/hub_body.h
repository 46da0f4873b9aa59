/* The JSON body of a small request. */
#ifndef API_HUB_BODY_H
#define API_HUB_BODY_H

#include "api/exchange/exchange.h"
#include "base/format/json_node.h"

enum { HUB_BODY_MAX_BYTES = 64 * 1024 };

/* Collects it. For `begin`. */
enum next hub_body_begin(struct exchange *exchange);
/* *out: its object, to be freed; NULL when the body is empty, which is an object without members.
 * invalid when it is none. */
int hub_body_parse(struct exchange *exchange, struct json_node **out, struct error *err);

#endif
