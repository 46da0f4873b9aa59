/* The query parameters that plain requests take: those that list, make or delete a bucket, or read,
 * write or delete an object. S3 keeps getting sub-resources, and one that nobody here has heard of
 * must not be taken for the plain request. */
#ifndef API_S3_REQUEST_PLAIN_QUERY_H
#define API_S3_REQUEST_PLAIN_QUERY_H

#include "api/exchange/exchange.h"

/* `check` of the S3 face. ERROR_UNSUPPORTED, with the name in `Header`, for a parameter that the
 * plain request does not take. Reads pass over one that has a value, as S3 does: sub-resources are
 * bare. Other rows are not looked at. */
int plain_query_check(struct exchange *exchange, struct error *err);

#endif
