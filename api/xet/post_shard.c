/* Both versions stream the body into a shard upload (shard_wait.h). Version 1 waits for its end and
 * replies; version 2 leaves the reply to shard_lines.h. */
#include "api/xet/handlers.h"

#include "api/xet/shard_lines.h"
#include "chunker/shard.h"

struct post_shard {            /* the exchange's state */
	struct body_sink sink; /* first: the body's way into the shard */
	struct shard_wait *wait;
	struct shard_lines lines; /* of version 2 */
};

static struct post_shard *open_state(struct exchange *exchange, struct error *err);
static enum sink_result post_shard_body_write(
	struct body_sink *sink, struct span bytes, struct error *err);
static int post_shard_body_finish(struct body_sink *sink, struct error *err);
static void post_shard_body_abort(struct body_sink *sink);
static void post_shard_release(struct exchange *exchange);
static void post_shard_hang_up(struct exchange *exchange);

enum next post_shard_begin(struct exchange *exchange)
{
	struct error err = {0};
	struct post_shard *const state = open_state(exchange, &err);
	if (state == NULL)
		return exchange_fail(exchange, &err);
	exchange->state = state;
	exchange->release = post_shard_release;
	exchange->hang_up = post_shard_hang_up;
	return exchange_accept(exchange, &state->sink);
}

enum next post_shard_finish(struct exchange *exchange)
{
	const struct post_shard *const state = exchange->state;
	ASSERT(state->wait != NULL); /* the body was not aborted */
	shard_wait_finish(state->wait);
	shard_wait_for(state->wait, 0);
	return NEXT_WAIT;
}

enum next post_shard_resume(struct exchange *exchange)
{
	static const char *const bodies[] = {"{\"result\":0}", "{\"result\":1}"};
	const struct post_shard *const state = exchange->state;
	struct error err = {0};
	if (shard_wait_outcome(state->wait, &err) != 0)
		return exchange_fail(exchange, &err);
	const struct shard_report *const report = shard_put_report(shard_wait_put(state->wait));
	return exchange_reply_body(
		exchange, 200, "application/json", span_text(bodies[report->new_files > 0]));
}

enum next post_shard_v2_finish(struct exchange *exchange)
{
	struct post_shard *const state = exchange->state;
	ASSERT(state->wait != NULL); /* the body was not aborted */
	shard_wait_finish(state->wait);
	state->lines = (struct shard_lines){.exchange = exchange, .wait = state->wait};
	return shard_lines_begin(&state->lines);
}

enum next post_shard_v2_resume(struct exchange *exchange)
{
	return shard_lines_resume(&((struct post_shard *)exchange->state)->lines);
}

static struct post_shard *open_state(struct exchange *exchange, struct error *err)
{
	if (exchange->has_length && exchange->length > SHARD_MAX_BYTES) {
		error_set(err, ERROR_TOO_LARGE, "A shard may have at most %d bytes.",
			SHARD_MAX_BYTES);
		return NULL;
	}
	struct post_shard *const state = arena_take(exchange->arena, sizeof(*state));
	if (state == NULL) {
		error_set(err, ERROR_NO_MEMORY, "The memory of the request ran out.");
		return NULL;
	}
	*state = (struct post_shard){.sink = {.write = post_shard_body_write,
					     .finish = post_shard_body_finish,
					     .abort = post_shard_body_abort}};
	state->wait = shard_wait_open(exchange);
	return state;
}

static enum sink_result post_shard_body_write(
	struct body_sink *sink, struct span bytes, struct error *err)
{
	return shard_put_write(shard_wait_put(((struct post_shard *)sink)->wait), bytes, err);
}

/* Does nothing: post_shard_finish starts the call, after every filter has accepted the body. */
static int post_shard_body_finish(struct body_sink *sink, struct error *err)
{
	(void)sink, (void)err;
	return 0;
}

static void post_shard_body_abort(struct body_sink *sink)
{
	struct post_shard *const state = (struct post_shard *)sink;
	shard_wait_close(state->wait);
	state->wait = NULL;
}

static void post_shard_release(struct exchange *exchange)
{
	shard_wait_close(((struct post_shard *)exchange->state)->wait);
}

static void post_shard_hang_up(struct exchange *exchange)
{
	const struct post_shard *const state = exchange->state;
	if (state->wait != NULL)
		shard_wait_hang_up(state->wait);
}
