#include "api/xet/handlers.h"

#include "api/auth/xet_token.h"
#include "api/xet/xorb_request.h"
#include "storage/xet/chunk_answer.h"

enum next get_chunk_begin(struct exchange *exchange)
{
	struct error err = {0};
	struct chunk_id id;
	ASSERT(exchange->transfer != NULL); /* the route requires a token */
	if (xorb_request_hash(exchange, &id, &err) != 0)
		return exchange_fail(exchange, &err);
	struct call *const call = chunk_answer_call(
		exchange->context->store, &id, exchange->transfer->is_write, &err);
	return call == NULL ? exchange_fail(exchange, &err) : exchange_await(exchange, call);
}

enum next get_chunk_resume(struct exchange *exchange)
{
	struct error err = {0};
	struct buffer shard;
	if (call_outcome(exchange->call, &err) != 0)
		return exchange_fail(exchange, &err);
	chunk_answer_result(exchange->call, &shard);
	exchange_add_header(exchange, "Cache-Control", "private, no-store");
	return exchange_reply_buffer(exchange, 200, "application/octet-stream", &shard);
}
