/* What S3 has and this server does not do: a clear 501, so that no sub-resource is ever taken for a
 * plain object or bucket request. */
#ifndef API_S3_REQUEST_NOT_IMPLEMENTED_H
#define API_S3_REQUEST_NOT_IMPLEMENTED_H

#include "api/exchange/exchange.h"

enum next not_implemented_begin(struct exchange *exchange);

#endif
