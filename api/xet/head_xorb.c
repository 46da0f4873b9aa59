#include "api/xet/handlers.h"

#include "api/xet/xorb_request.h"
#include "storage/xet/xorb.h"

enum next head_xorb_begin(struct exchange *exchange)
{
	struct store *const store = exchange->context->store;
	struct error err = {0};
	struct chunk_id hash;
	struct xorb xorb;
	uint64_t length;
	if (xorb_request_hash(exchange, &hash, &err) != 0 ||
		xorb_find(store, &hash, &xorb, &err) != 0 ||
		xorb_length(store, &xorb, &length, &err) != 0)
		return exchange_fail(exchange, &err);
	const enum next next = exchange_reply_empty(exchange, 200);
	exchange->reply.length = length;
	exchange->reply.length_known = true;
	return next;
}
