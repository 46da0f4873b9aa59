#include "api/xet/post_shard.h"

#include "api/xet/shard_lines.h"
#include "chunker/shard.h"

struct post_shard {            /* the exchange's state */
	struct body_sink sink; /* first: the body's way into the shard */
	struct shard_wait *wait;
	struct shard_lines lines; /* of version 2 */
};

static struct post_shard *open_state(struct exchange *exchange, struct error *err);
static enum sink_result write_body(struct body_sink *sink, struct span bytes, struct error *err);
static int finish_body(struct body_sink *sink, struct error *err);
static void abort_body(struct body_sink *sink);
static void release(struct exchange *exchange);
static void hang_up(struct exchange *exchange);

enum next post_shard_begin(struct exchange *exchange)
{
	struct error err = {0};
	struct post_shard *const state = open_state(exchange, &err);
	if (state == NULL)
		return exchange_fail(exchange, &err);
	exchange->state = state;
	exchange->release = release;
	exchange->hang_up = hang_up;
	return exchange_accept(exchange, &state->sink);
}

enum next post_shard_finish(struct exchange *exchange)
{
	const struct post_shard *const state = exchange->state;
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
		error_set(err, ERROR_TOO_LARGE, "A shard has %d bytes at most.", SHARD_MAX_BYTES);
		return NULL;
	}
	struct post_shard *const state = arena_take(exchange->arena, sizeof *state);
	if (state == NULL) {
		error_set(err, ERROR_NO_MEMORY, "The request's headers leave no memory for it.");
		return NULL;
	}
	*state = (struct post_shard){
		.sink = {.write = write_body, .finish = finish_body, .abort = abort_body}};
	state->wait = shard_wait_open(exchange);
	return state;
}

static enum sink_result write_body(struct body_sink *sink, struct span bytes, struct error *err)
{
	return shard_put_write(shard_wait_put(((struct post_shard *)sink)->wait), bytes, err);
}

/* The shard is finished in post_shard_finish, once every filter found the body good. */
static int finish_body(struct body_sink *sink, struct error *err)
{
	(void)sink, (void)err;
	return 0;
}

static void abort_body(struct body_sink *sink)
{
	struct post_shard *const state = (struct post_shard *)sink;
	shard_wait_close(state->wait);
	state->wait = NULL;
}

static void release(struct exchange *exchange)
{
	shard_wait_close(((struct post_shard *)exchange->state)->wait);
}

static void hang_up(struct exchange *exchange)
{
	const struct post_shard *const state = exchange->state;
	if (state->wait != NULL)
		shard_wait_hang_up(state->wait);
}
