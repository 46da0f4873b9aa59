/* HeadXorb: HEAD /xet/v1/xorbs/{prefix}/{hash}. Tells whether a xorb is stored, and how many bytes
 * its records have. Old clients ask. */
#ifndef API_XET_HEAD_XORB_H
#define API_XET_HEAD_XORB_H

#include "api/exchange/exchange.h"

enum next head_xorb_begin(struct exchange *exchange);

#endif
