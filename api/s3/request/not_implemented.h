/* Operations of S3 that this server does not have: 501 with the route's name, so that no
 * sub-resource is ever taken for a plain object or bucket request. */
#ifndef API_S3_REQUEST_NOT_IMPLEMENTED_H
#define API_S3_REQUEST_NOT_IMPLEMENTED_H

#include "api/exchange/exchange.h"

enum next not_implemented_begin(struct exchange *exchange);

#endif
