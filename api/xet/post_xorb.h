/* PostXorb: POST /xet/v1/xorbs/{prefix}/{hash}. The body is a serialized xorb of that hash. The
 * xorb is durable and promised before the reply. */
#ifndef API_XET_POST_XORB_H
#define API_XET_POST_XORB_H

#include "api/exchange/exchange.h"

enum next post_xorb_begin(struct exchange *exchange);
enum next post_xorb_finish(struct exchange *exchange);
enum next post_xorb_resume(struct exchange *exchange);

#endif
