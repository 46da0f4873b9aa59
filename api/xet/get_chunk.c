#include "api/xet/get_chunk.h"

#include "api/auth/xet_token.h"
#include "api/xet/xorb_request.h"
#include "storage/xet/chunk_answer.h"

struct get_chunk { /* the exchange's state */
	struct chunk_answer *answer;
};

static void release(struct exchange *exchange)
{
	chunk_answer_free(((struct get_chunk *)exchange->state)->answer);
}

enum next get_chunk_begin(struct exchange *exchange)
{
	struct error err = {0};
	struct chunk_id id;
	if (xorb_request_hash(exchange, &id, &err) != 0)
		return exchange_fail(exchange, &err);
	struct get_chunk *const state = arena_take(exchange->arena, sizeof *state);
	if (state == NULL) {
		error_set(&err, ERROR_NO_MEMORY, "The request's headers leave no memory for it.");
		return exchange_fail(exchange, &err);
	}
	exchange->state = state;
	exchange->release = release;
	state->answer = chunk_answer_start(exchange->context->store, &id,
		exchange->transfer->is_write, exchange_wake_owner, exchange, &err);
	return state->answer == NULL ? exchange_fail(exchange, &err) : NEXT_WAIT;
}

enum next get_chunk_resume(struct exchange *exchange)
{
	struct get_chunk *const state = exchange->state;
	struct error err = {0};
	struct buffer shard;
	if (chunk_answer_outcome(state->answer, &shard, &err) != 0)
		return exchange_fail(exchange, &err);
	exchange_add_header(exchange, "Cache-Control", "private, no-store");
	return exchange_reply_buffer(exchange, 200, "application/octet-stream", &shard);
}
