/* The headers of a PUT that are stored with an object and given back with it: HTTP's own and x-amz-meta-*. */
#ifndef API_S3_OBJECT_HEADERS_H
#define API_S3_OBJECT_HEADERS_H

#include "api/exchange.h"
#include "storage/object.h"

enum { OBJECT_HEADERS_META_MAX = 28 }; /* with all others they must fit into a reply */

/* Collects them, names in lower case, repeats of one name joined; in the exchange's arena. metadata_too_large past the counts. */
int object_headers_collect(struct exchange *exchange, struct object_header **out_headers, size_t *out_count, struct error *err);

#endif
