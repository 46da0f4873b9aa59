#include "api/exchange/event_stream.h"

#include <string.h>

#include "storage/core/change_feed.h"

enum {
	OUT_MAX_BYTES = 4 * 1024 * 1024,
	SCOPE_ARENA_BYTES = 16 * 1024 * 1024,
	TURN_MS = 1,
	PING_MS = 30 * 1000
};

static ptrdiff_t event_stream_read(
	struct body_source *source, uint8_t *into, size_t capacity, struct error *err);
static bool advance(struct event_stream *stream);
static bool is_over(const struct event_stream *stream);
static ptrdiff_t give(struct event_stream *stream, uint8_t *into, size_t capacity);
static void event_stream_close(struct body_source *source);

void event_stream_init(struct event_stream *stream, const struct event_stream_kind *kind,
	struct exchange *exchange)
{
	*stream = (struct event_stream){
		.source = {.read = event_stream_read, .close = event_stream_close},
		.kind = kind,
		.exchange = exchange};
	buffer_init(&stream->out, OUT_MAX_BYTES);
	long_wait_init(&stream->wait, exchange, exchange->context->shares.streams, 0);
	stream->ping_ms = event_stream_now_ms(stream) + PING_MS;
}

enum next event_stream_reply(struct event_stream *stream)
{
	struct error err = {0};
	if (long_wait_enter(&stream->wait, &err) != 0)
		return event_stream_fail(stream, &err);
	exchange_add_header(stream->exchange, "Cache-Control", "no-cache");
	exchange_add_header(stream->exchange, "X-Accel-Buffering", "no");
	return exchange_reply_stream(stream->exchange, 200, "text/event-stream", &stream->source);
}

enum next event_stream_fail(struct event_stream *stream, const struct error *err)
{
	buffer_release(&stream->out);
	return exchange_fail(stream->exchange, err);
}

bool event_stream_pause(struct event_stream *stream, int64_t ms)
{
	change_feed_pause(
		store_change_feed(stream->exchange->context->store), ms, &stream->wait.waiter);
	long_wait_begun(&stream->wait);
	return false;
}

bool event_stream_yield(struct event_stream *stream)
{
	return event_stream_pause(stream, TURN_MS);
}

void event_stream_ping(struct event_stream *stream)
{
	if (event_stream_now_ms(stream) >= stream->ping_ms)
		server_event_ping(&stream->out);
}

int64_t event_stream_now_ms(const struct event_stream *stream)
{
	const struct clock_source *const clock = stream->exchange->context->clock;
	return clock->monotonic_ms(clock);
}

void event_scope_open(struct event_scope *scope, struct exchange *exchange)
{
	*scope = (struct event_scope){exchange->arena, exchange->principal, exchange->session};
	exchange->arena = arena_new(SCOPE_ARENA_BYTES);
}

void event_scope_close(const struct event_scope *scope, struct exchange *exchange)
{
	arena_free(exchange->arena);
	exchange->arena = scope->own_arena;
	exchange->principal = scope->own_principal;
	exchange->session = scope->own_session;
}

static ptrdiff_t event_stream_read(
	struct body_source *source, uint8_t *into, size_t capacity, struct error *err)
{
	struct event_stream *const stream = (struct event_stream *)source;
	while (stream->out.len == 0) {
		if (stream->has_ended)
			return 0;
		if (!advance(stream))
			return SOURCE_WAIT;
		if (buffer_failed(&stream->out))
			return error_set(err, ERROR_NO_MEMORY, "An event does not fit its buffer.");
	}
	return give(stream, into, capacity);
}

static bool advance(struct event_stream *stream)
{
	if (is_over(stream)) {
		stream->kind->leave(stream);
		stream->has_ended = true;
	} else if (!stream->kind->advance(stream)) {
		return false;
	}
	if (stream->out.len > 0)
		stream->ping_ms = event_stream_now_ms(stream) + PING_MS;
	return true;
}

static bool is_over(const struct event_stream *stream)
{
	struct error crowded = {0};
	return long_wait_is_stopping(&stream->wait) ||
		long_wait_check(&stream->wait, &crowded) != 0;
}

static ptrdiff_t give(struct event_stream *stream, uint8_t *into, size_t capacity)
{
	ASSERT(stream->out_at < stream->out.len);
	const size_t left = stream->out.len - stream->out_at;
	const size_t len = left < capacity ? left : capacity;
	memcpy(into, stream->out.data + stream->out_at, len);
	stream->out_at += len;
	if (stream->out_at == stream->out.len) {
		buffer_release(&stream->out);
		buffer_init(&stream->out, OUT_MAX_BYTES);
		stream->out_at = 0;
	}
	return (ptrdiff_t)len;
}

static void event_stream_close(struct body_source *source)
{
	buffer_release(&((struct event_stream *)source)->out);
}
