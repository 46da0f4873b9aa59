/* GET and HEAD /-/may: whether the caller may GET a path that a cache keeps for its readers.
 * docs/protocol/admin.md, "May". It touches no object: no anchor is made and no step is read. */
#ifndef API_ADMIN_MAY_H
#define API_ADMIN_MAY_H

#include "api/exchange/exchange.h"

enum next may_begin(struct exchange *exchange);

#endif
