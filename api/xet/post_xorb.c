#include "api/xet/post_xorb.h"

#include "api/xet/xorb_request.h"
#include "chunker/xorb_parse.h"
#include "storage/xet/xorb_put.h"

struct post_xorb {             /* the exchange's state */
	struct body_sink sink; /* first: the body's way into `put` */
	struct exchange *exchange;
	struct xorb_put *put; /* its call is the exchange's */
};

static enum sink_result write_body(struct body_sink *sink, struct span bytes, struct error *err);
static int finish_body(struct body_sink *sink, struct error *err);
static void abort_body(struct body_sink *sink);
static int open_put(struct exchange *exchange, struct post_xorb *state, struct error *err);

enum next post_xorb_begin(struct exchange *exchange)
{
	struct error err = {0};
	struct post_xorb *const state = arena_take(exchange->arena, sizeof *state);
	if (state == NULL) {
		error_set(&err, ERROR_NO_MEMORY, "The request's headers leave no memory for it.");
		return exchange_fail(exchange, &err);
	}
	*state = (struct post_xorb){
		.sink = {.write = write_body, .finish = finish_body, .abort = abort_body},
		.exchange = exchange};
	if (open_put(exchange, state, &err) != 0)
		return exchange_fail(exchange, &err);
	exchange->state = state;
	return exchange_accept(exchange, &state->sink);
}

enum next post_xorb_finish(struct exchange *exchange)
{
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

static enum sink_result write_body(struct body_sink *sink, struct span bytes, struct error *err)
{
	return xorb_put_write(((struct post_xorb *)sink)->put, bytes, err);
}

/* The xorb is finished in post_xorb_finish, once every filter found the body good. */
static int finish_body(struct body_sink *sink, struct error *err)
{
	(void)sink, (void)err;
	return 0;
}

static void abort_body(struct body_sink *sink)
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
		return error_set(err, ERROR_TOO_LARGE, "A serialized xorb has at most %d bytes.",
			XORB_BODY_MAX_BYTES);
	state->put = xorb_put_open(exchange->context->store, &params, err);
	if (state->put == NULL)
		return -1;
	exchange->call = xorb_put_call(state->put);
	return 0;
}
