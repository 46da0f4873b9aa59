/* The query parameters that plain requests may have. Plain requests list, make or delete a bucket,
 * or read, write or delete an object. S3 keeps getting new sub-resources, and one that this server
 * does not know must not be taken for the plain request. */
#ifndef API_S3_REQUEST_PLAIN_QUERY_H
#define API_S3_REQUEST_PLAIN_QUERY_H

#include "api/exchange/exchange.h"

/* The S3 face's `check` (api/exchange/error_map.h). unsupported, with the name in `Header`, for a
 * parameter that the plain request may not have. A read ignores one that has a value, as S3 does,
 * because sub-resources have none. 0 for all other rows of the table. */
int plain_query_check(struct exchange *exchange, struct error *err);

#endif
