/* PostGrant: POST /xet/v1/xorb-grants/{prefix}/{hash}, which new clients send before each xorb.
 * 200: the xorb is stored and promised again, so the client need not send it. Else 404: the client
 * sends it here. The protocol's 201, which names another place to send it to, is not used. */
#ifndef API_XET_POST_GRANT_H
#define API_XET_POST_GRANT_H

#include "api/exchange/exchange.h"

enum next post_grant_begin(struct exchange *exchange);
enum next post_grant_finish(struct exchange *exchange);
enum next post_grant_resume(struct exchange *exchange);

#endif
