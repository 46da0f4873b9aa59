/* Reads the JSON body of a small request. */
#ifndef API_HUB_BODY_H
#define API_HUB_BODY_H

#include "api/exchange/exchange.h"
#include "base/format/json_node.h"

enum { HUB_BODY_MAX_BYTES = 64 * 1024 };

/* Collects the body. For `begin`. */
enum next hub_body_begin(struct exchange *exchange);
/* Gives the body's object, which the caller frees; NULL for an empty body, which counts as an
 * object without members. invalid when the body is not an object. */
int hub_body_parse(struct exchange *exchange, struct json_node **out, struct error *err);

#endif
