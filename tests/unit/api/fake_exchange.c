#include "tests/unit/api/fake_exchange.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { FAKE_REPLY_MAX_BYTES = 256 * 1024 * 1024, FAKE_BLOCK_BYTES = 256 * 1024 };

static bool is_header(struct span name, const char *wanted)
{
	return span_equal_nocase(name, wanted);
}

static struct span find_header(struct exchange *exchange, const char *name)
{
	struct fake_exchange *const fake = (struct fake_exchange *)exchange;
	struct span joined = {NULL, 0};
	for (size_t i = 0; i < fake->header_count; i++) {
		if (!is_header(fake->headers[i].name, name))
			continue;
		const struct span value = fake->headers[i].value;
		if (joined.data == NULL)
			joined = value;
		else
			joined = span_text(arena_format(exchange->arena, "%.*s, %.*s",
				(int)joined.len, (const char *)joined.data, (int)value.len,
				(const char *)value.data));
	}
	return joined;
}

static void walk_headers(struct exchange *exchange,
	void (*take)(void *taker, struct span name, struct span value), void *taker)
{
	struct fake_exchange *const fake = (struct fake_exchange *)exchange;
	for (size_t i = 0; i < fake->header_count; i++)
		take(taker, fake->headers[i].name, fake->headers[i].value);
}

static void wake(struct exchange *exchange)
{
	struct fake_exchange *const fake = (struct fake_exchange *)exchange;
	lock_enter(&fake->lock);
	fake->woken++;
	lock_signal(&fake->condition);
	lock_leave(&fake->lock);
}

static void cut(struct exchange *exchange)
{
	((struct fake_exchange *)exchange)->is_cut = true;
}

static const char *client(struct exchange *exchange)
{
	(void)exchange;
	return "192.0.2.1";
}

static const struct exchange_ops fake_ops = {find_header, walk_headers, wake, cut, client};

static void wait_for_wake(struct fake_exchange *fake)
{
	fake->waits++;
	lock_enter(&fake->lock);
	while (fake->woken == 0)
		lock_wait(&fake->lock, &fake->condition);
	fake->woken--;
	ASSERT(fake->woken == 0); /* exactly one wake for each wait */
	lock_leave(&fake->lock);
}

static const struct api_context *default_context(struct arena *arena)
{
	struct api_context *const context = arena_take(arena, sizeof *context);
	context->clock = clock_system();
	context->region = "us-east-1";
	context->default_namespace = "main";
	context->put_max_bytes = (uint64_t)5 << 30;
	context->sigv2 = true;
	return context;
}

struct fake_exchange *fake_exchange_new(
	const struct api_context *context, enum method method, const char *target)
{
	struct fake_exchange *const fake = memory_new(sizeof *fake);
	struct exchange *const exchange = &fake->exchange;
	fake->target = memory_copy_text(target);
	lock_init(&fake->lock, LOCK_EXCHANGE);
	lock_condition_init(&fake->condition);
	buffer_init(&fake->body, FAKE_REPLY_MAX_BYTES);
	exchange->ops = &fake_ops;
	exchange->arena = arena_new(EXCHANGE_ARENA_BYTES);
	exchange->context = context != NULL ? context : default_context(exchange->arena);
	memcpy(exchange->request_id, "0123456789abcdef0123456789abcdef",
		sizeof exchange->request_id);
	exchange->method = method;
	exchange->target = span_text(fake->target);
	const ptrdiff_t mark = span_find(exchange->target, '?');
	exchange->path =
		mark < 0 ? exchange->target : span_slice(exchange->target, 0, (size_t)mark);
	exchange->query = mark < 0
		? span_text("")
		: span_slice(exchange->target, (size_t)mark + 1, exchange->target.len);
	exchange->face = &face_s3;
	return fake;
}

void fake_exchange_free(struct fake_exchange *fake)
{
	if (fake == NULL)
		return;
	struct exchange *const exchange = &fake->exchange;
	if (fake->is_waiting) /* its wake is still to come */
		wait_for_wake(fake);
	if (exchange->sink != NULL)
		exchange->sink->abort(exchange->sink);
	if (exchange->reply.source != NULL)
		exchange->reply.source->close(exchange->reply.source);
	exchange_release(exchange);
	buffer_release(&exchange->reply.bytes);
	arena_free(exchange->arena);
	buffer_release(&fake->body);
	lock_condition_release(&fake->condition);
	lock_release(&fake->lock);
	free(fake->target);
	free(fake);
}

void fake_exchange_add(struct fake_exchange *fake, const char *name, const char *value)
{
	ASSERT(fake->header_count < FAKE_HEADERS_MAX);
	fake->headers[fake->header_count].name =
		span_text(arena_text(fake->exchange.arena, span_text(name)));
	fake->headers[fake->header_count].value =
		span_text(arena_text(fake->exchange.arena, span_text(value)));
	fake->header_count++;
}

static void drop_sink(struct exchange *exchange)
{
	exchange->sink->abort(exchange->sink);
	exchange->sink = NULL;
}

/* False when a reply was set. */
static bool send_piece(struct fake_exchange *fake, struct span piece)
{
	struct exchange *const exchange = &fake->exchange;
	struct error err = {0};
	enum sink_result result;
	while ((result = exchange->sink->write(exchange->sink, piece, &err)) == SINK_WAIT)
		wait_for_wake(fake);
	if (result == SINK_TAKEN)
		return true;
	drop_sink(exchange);
	exchange_fail_body(exchange, &err);
	return false;
}

static bool send_body(struct fake_exchange *fake, struct span body)
{
	const size_t step = fake->piece_bytes > 0 ? fake->piece_bytes : body.len;
	for (size_t at = 0; at < body.len; at += step)
		if (!send_piece(fake, span_slice(body, at, step)))
			return false;
	return true;
}

static enum next take_body(struct fake_exchange *fake, const struct route *route, struct span body)
{
	struct exchange *const exchange = &fake->exchange;
	struct error err = {0};
	if (!send_body(fake, body))
		return NEXT_REPLY;
	if (exchange->sink->finish(exchange->sink, &err) != 0) {
		drop_sink(exchange);
		return exchange_fail_body(exchange, &err);
	}
	exchange->sink = NULL;
	if (fake->before_finish != NULL)
		fake->before_finish();
	return fake->is_routed ? router_finish(exchange) : route->finish(exchange);
}

/* Reads until the source ends, fails or waits. */
static ptrdiff_t read_on(struct fake_exchange *fake)
{
	struct reply *const reply = &fake->exchange.reply;
	struct error err = {0};
	ptrdiff_t got = 1;
	while (got > 0) {
		uint8_t *const room = buffer_reserve(&fake->body, FAKE_BLOCK_BYTES);
		ASSERT(room != NULL);
		got = reply->source->read(reply->source, room, FAKE_BLOCK_BYTES, &err);
		if (got > 0)
			buffer_commit(&fake->body, (size_t)got);
	}
	ASSERT(got != SOURCE_WAIT || reply->may_wait);
	fake->body_failed = got == -1;
	fake->is_waiting = got == SOURCE_WAIT;
	return got;
}

static void read_reply(struct fake_exchange *fake)
{
	const struct reply *const reply = &fake->exchange.reply;
	if (reply->source == NULL)
		buffer_add_span(&fake->body, reply->body);
	else if (!reply->may_wait || !fake->leaves_body)
		while (read_on(fake) == SOURCE_WAIT)
			wait_for_wake(fake);
}

bool fake_exchange_read(struct fake_exchange *fake)
{
	if (fake->is_waiting)
		wait_for_wake(fake);
	return read_on(fake) == SOURCE_WAIT;
}

static void declare_body(struct fake_exchange *fake, uint64_t length)
{
	if (!fake->exchange.has_length && !fake->exchange.chunked) {
		fake->exchange.has_length = true;
		fake->exchange.length = length;
	}
}

static int drive(
	struct fake_exchange *fake, const struct route *route, enum next next, struct span body)
{
	struct exchange *const exchange = &fake->exchange;
	if (next == NEXT_BODY)
		next = take_body(fake, route, body);
	while (next == NEXT_WAIT) {
		wait_for_wake(fake);
		next = router_resume(exchange);
	}
	ASSERT(next == NEXT_REPLY);
	read_reply(fake);
	return exchange->reply.status;
}

int fake_exchange_run(struct fake_exchange *fake, struct span body)
{
	declare_body(fake, body.len);
	fake->is_routed = true;
	const enum next next = router_begin(&fake->exchange);
	return drive(fake, fake->exchange.route, next, body);
}

int fake_exchange_run_route(struct fake_exchange *fake, const struct route *route, struct span body)
{
	declare_body(fake, body.len);
	fake->exchange.route = route;
	if (route->face != NULL)
		fake->exchange.face = route->face;
	return drive(fake, route, route->begin(&fake->exchange), body);
}

void fake_exchange_cut(struct fake_exchange *fake, struct span part, uint64_t length)
{
	declare_body(fake, length);
	if (router_begin(&fake->exchange) == NEXT_BODY)
		send_body(fake, part);
}

const char *fake_exchange_reply_header(const struct fake_exchange *fake, const char *name)
{
	const struct reply *const reply = &fake->exchange.reply;
	for (size_t i = 0; i < reply->header_count; i++)
		if (is_header(span_text(reply->headers[i].name), name))
			return reply->headers[i].value;
	return NULL;
}
