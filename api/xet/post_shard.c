#include "api/xet/post_shard.h"

#include "api/xet_token.h"
#include "base/json_node.h"
#include "chunker/shard.h"
#include "storage/shard_put.h"

enum { LINE_MAX_BYTES = 4096 };

struct post_shard { /* the exchange's state */
	struct body_sink sink; /* first: the body's way into `put` */
	struct shard_put *put;
};

static enum sink_result write_body(struct body_sink *const sink, const struct span bytes, struct error *const err)
{
	return shard_put_write(((struct post_shard *)sink)->put, bytes, err);
}

/* The shard is finished in post_shard_finish, once every filter found the body good. */
static int finish_body(struct body_sink *const sink, struct error *const err)
{
	(void)sink, (void)err;
	return 0;
}

static void abort_body(struct body_sink *const sink)
{
	struct post_shard *const state = (struct post_shard *)sink;
	shard_put_free(state->put);
	state->put = NULL;
}

static void release(struct exchange *const exchange)
{
	shard_put_free(((struct post_shard *)exchange->state)->put);
}

static struct post_shard *open_state(struct exchange *const exchange, struct error *const err)
{
	const struct shard_put_params params = {
		.bucket_id = exchange->transfer->bucket_id,
		.account = exchange->transfer->account,
		.room = exchange_wake_owner,
		.done = exchange_wake_owner,
		.owner = exchange,
	};
	if (exchange->has_length && exchange->length > SHARD_MAX_BYTES) {
		error_set(err, ERROR_TOO_LARGE, "A shard has %d bytes at most.", SHARD_MAX_BYTES);
		return NULL;
	}
	struct post_shard *const state = arena_take(exchange->arena, sizeof *state);
	if (state == NULL) {
		error_set(err, ERROR_NO_MEMORY, "The request's headers leave no memory for it.");
		return NULL;
	}
	*state = (struct post_shard){.sink = {.write = write_body, .finish = finish_body, .abort = abort_body}};
	state->put = shard_put_open(exchange->context->store, &params);
	return state;
}

enum next post_shard_begin(struct exchange *const exchange)
{
	struct error err = {0};
	struct post_shard *const state = open_state(exchange, &err);
	if (state == NULL)
		return exchange_fail(exchange, &err);
	exchange->state = state;
	exchange->release = release;
	return exchange_accept(exchange, &state->sink);
}

enum next post_shard_finish(struct exchange *const exchange)
{
	shard_put_finish(((struct post_shard *)exchange->state)->put);
	return NEXT_WAIT;
}

enum next post_shard_resume(struct exchange *const exchange)
{
	static const char *const bodies[] = {"{\"result\":0}", "{\"result\":1}"};
	const struct post_shard *const state = exchange->state;
	struct error err = {0};
	struct shard_report report;
	if (shard_put_outcome(state->put, &report, &err) != 0)
		return exchange_fail(exchange, &err);
	return exchange_reply_body(exchange, 200, "application/json", span_text(bodies[report.new_files > 0]));
}

/* Clients read one line that ends the reply, and nothing behind it. */
static enum next reply_line(struct exchange *const exchange, const struct error *const failure)
{
	struct buffer line;
	struct json_writer json;
	buffer_init(&line, LINE_MAX_BYTES);
	json_writer_init(&json, &line);
	json_writer_object(&json, NULL);
	json_writer_text(&json, "type", span_text(failure == NULL ? "result" : "error"));
	if (failure != NULL) {
		json_writer_text(&json, "message", span_text(failure->text));
		json_writer_bool(&json, "retryable", failure->kind == ERROR_BUSY);
	}
	json_writer_end(&json, '}');
	buffer_add_byte(&line, '\n');
	exchange_add_header(exchange, "Cache-Control", "no-cache");
	return exchange_reply_buffer(exchange, 200, "application/x-ndjson", &line);
}

static bool is_stopping(const struct exchange *const exchange)
{
	const _Atomic bool *const stopping = exchange->context->stopping;
	return stopping != NULL && *stopping;
}

/* What broke on our side keeps its status, and so does a server that stops: clients try again then as well, and it is logged. */
enum next post_shard_v2_resume(struct exchange *const exchange)
{
	const struct post_shard *const state = exchange->state;
	struct error err = {0};
	struct shard_report report;
	if (shard_put_outcome(state->put, &report, &err) == 0)
		return reply_line(exchange, NULL);
	const bool is_told = err.kind == ERROR_INVALID || err.kind == ERROR_TOO_LARGE || (err.kind == ERROR_BUSY && !is_stopping(exchange));
	return is_told ? reply_line(exchange, &err) : exchange_fail(exchange, &err);
}
