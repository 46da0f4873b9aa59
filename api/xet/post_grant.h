/* PostGrant: POST /xet/v1/xorb-grants/{prefix}/{hash}, which new clients send before each xorb.
 * 200: it is here and promised anew, and need not be sent; else 404. Where a xorb may be sent
 * instead (201) is never told: it comes here anyway. */
#ifndef API_XET_POST_GRANT_H
#define API_XET_POST_GRANT_H

#include "api/exchange/exchange.h"

enum next post_grant_begin(struct exchange *exchange);
enum next post_grant_finish(struct exchange *exchange);
enum next post_grant_resume(struct exchange *exchange);

#endif
