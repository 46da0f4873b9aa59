#include "api/xet/handlers.h"

#include "api/xet/xorb_request.h"
#include "chunker/xorb_parse.h"
#include "storage/xet/xorb_put.h"

struct post_xorb {             /* the exchange's state */
	struct body_sink sink; /* first: the body's way into `put` */
	struct exchange *exchange;
	struct xorb_put *put; /* its call is the exchange's */
};

static enum sink_result post_xorb_body_write(
	struct body_sink *sink, struct span bytes, struct error *err);
static int post_xorb_body_finish(struct body_sink *sink, struct error *err);
static void post_xorb_body_abort(struct body_sink *sink);
static int open_put(struct exchange *exchange, struct post_xorb *state, struct error *err);

enum next post_xorb_begin(struct exchange *exchange)
{
	struct error err = {0};
	struct post_xorb *const state = arena_take(exchange->arena, sizeof(*state));
	if (state == NULL) {
		error_set(&err, ERROR_NO_MEMORY, "The memory of the request ran out.");
		return exchange_fail(exchange, &err);
	}
	*state = (struct post_xorb){.sink = {.write = post_xorb_body_write,
					    .finish = post_xorb_body_finish,
					    .abort = post_xorb_body_abort},
		.exchange = exchange};
	if (open_put(exchange, state, &err) != 0)
		return exchange_fail(exchange, &err);
	exchange->state = state;
	return exchange_accept(exchange, &state->sink);
}

enum next post_xorb_finish(struct exchange *exchange)
{
	ASSERT(exchange->call != NULL); /* the body was not aborted */
	return exchange_await(exchange, exchange->call);
}

enum next post_xorb_resume(struct exchange *exchange)
{
	static const char *const bodies[] = {"{\"was_inserted\":false}", "{\"was_inserted\":true}"};
	const struct post_xorb *const state = exchange->state;
	struct error err = {0};
	if (call_outcome(exchange->call, &err) != 0)
		return exchange_fail(exchange, &err);
	return exchange_reply_body(exchange, 200, "application/json",
		span_text(bodies[xorb_put_inserted(state->put)]));
}

static enum sink_result post_xorb_body_write(
	struct body_sink *sink, struct span bytes, struct error *err)
{
	return xorb_put_write(((struct post_xorb *)sink)->put, bytes, err);
}

/* Does nothing: post_xorb_finish starts the call, after every filter has accepted the body. */
static int post_xorb_body_finish(struct body_sink *sink, struct error *err)
{
	(void)sink, (void)err;
	return 0;
}

static void post_xorb_body_abort(struct body_sink *sink)
{
	struct exchange *const exchange = ((struct post_xorb *)sink)->exchange;
	exchange_drop_call(exchange);
}

static int open_put(struct exchange *exchange, struct post_xorb *state, struct error *err)
{
	struct xorb_put_params params = {
		.private_codecs = xorb_request_has_private_codecs(exchange),
		.room = exchange_wake_owner,
		.owner = exchange,
	};
	if (xorb_request_hash(exchange, &params.hash, err) != 0)
		return -1;
	if (exchange->has_length && exchange->length > XORB_BODY_MAX_BYTES)
		return error_set(err, ERROR_TOO_LARGE,
			"A serialized xorb may have at most %d bytes.", XORB_BODY_MAX_BYTES);
	state->put = xorb_put_open(exchange->context->store, &params, err);
	if (state->put == NULL)
		return -1;
	exchange->call = xorb_put_call(state->put);
	return 0;
}
