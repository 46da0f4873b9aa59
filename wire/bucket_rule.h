/* What a bucket may be called when it is made: S3's rules, and names that are paths of the server.
 * The server refuses others, and clients say so before they begin anything. Buckets that Hub
 * clients make may have further names (api/route/hub_name.h). */
#ifndef WIRE_BUCKET_RULE_H
#define WIRE_BUCKET_RULE_H

#include <stdbool.h>

#include "base/span.h"

/* The end of a sentence that begins with the name: "must have 3 to 63 bytes". NULL when no rule is
 * broken. */
const char *bucket_rule_broken(struct span name);
/* Whether the name begins a path of the server. */
bool bucket_rule_is_reserved(struct span name);

#endif
