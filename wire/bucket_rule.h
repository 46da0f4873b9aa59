/* The rules for the name of a new bucket: S3's rules, and no name that begins a path of the server.
 * The server refuses other names; the client checks the rules before it begins anything. Buckets
 * that Hub clients make may have further names (api/route/hub_name.h). */
#ifndef WIRE_BUCKET_RULE_H
#define WIRE_BUCKET_RULE_H

#include <stdbool.h>

#include "base/span.h"

/* Returns NULL when the name keeps all rules. Otherwise it returns the end of a sentence that
 * begins with the name: "must have 3 to 63 bytes". */
const char *bucket_rule_broken(struct span name);
/* Whether the name begins a path of the server. */
bool bucket_rule_is_reserved(struct span name);

#endif
