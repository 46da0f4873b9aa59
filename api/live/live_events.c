/* The stream works in rounds, at most one a second. A round asks the parts (live_part.h) for news
 * and lets those that have some tell it, a piece at a time. The next piece is made only when the
 * piece before is sent, so a slow reader falls behind in what the parts follow and takes no memory
 * here. Stages:
 *
 *   ROUND --no part has news--> REST
 *   ROUND --news--> TELL --a piece--> TELL ... --all parts have told--> REST
 *   REST --waits until the next round is due--> ROUND
 *   any --the caller may not go on, or the server stops--> END
 *
 * Before each piece, and after ten seconds without one, it is judged again what the caller may,
 * with the keys and grants of that moment. */
#include "api/live/handlers.h"

#include <string.h>

#include "api/auth/authorise.h"
#include "api/auth/identify.h"
#include "api/exchange/long_wait.h"
#include "api/live/live_replicas.h"
#include "api/live/live_runs.h"
#include "api/live/live_server.h"
#include "api/live/live_text.h"
#include "api/live/run_element.h"
#include "base/encode.h"
#include "storage/core/change_feed.h"

enum {
	FOLLOWED_MAX = 4,
	PARTS_MAX = FOLLOWED_MAX + 2,
	NAME_MAX_BYTES = 1024,
	PIECE_MAX_BYTES = 4 * 1024 * 1024,
	ROUND_ARENA_BYTES = 16 * 1024 * 1024,
	ROUND_MS = 1000,
	TURN_MS = 1,
	JUDGE_MS = 8 * 1000, /* with a round more, a revoked key hears less than ten seconds */
	PING_MS = 30 * 1000
};

enum stage { STAGE_ROUND, STAGE_TELL, STAGE_REST, STAGE_END };

struct live_events {
	struct body_source source; /* first */
	struct long_wait wait;     /* for all waits of the stream */
	struct exchange *exchange;
	struct live_server server;
	struct live_runs runs;
	struct live_replicas followed[FOLLOWED_MAX];
	size_t followed_count;
	struct live_part *parts[PARTS_MAX]; /* those that the stream has */
	bool has_news[PARTS_MAX];           /* in this round, and not all told */
	size_t part_count;
	enum stage stage;
	/* on the monotonic clock: when the next round, judgement and ping are due */
	int64_t round_ms;
	int64_t judge_ms;
	int64_t ping_ms;
	struct buffer out;
	size_t out_at;
};

/* During a piece the exchange has an arena and a principal of the piece. */
struct scope {
	struct arena *own_arena;
	const struct principal *own_principal;
	const struct session_record *own_session;
};

static int open_stream(struct live_events *events, struct error *err);
static int follow_replicas(struct live_events *events, struct error *err);
static int follow_one(struct live_events *events, struct span text, struct error *err);
static bool wants(struct exchange *exchange, const char *name);
static void add_part(struct live_events *events, struct live_part *part);
static ptrdiff_t live_events_read(
	struct body_source *source, uint8_t *into, size_t capacity, struct error *err);
static bool advance(struct live_events *events);
static bool is_over(const struct live_events *events);
static void take_leave(struct live_events *events);
static void wait_for(struct live_events *events, int64_t ms);
static void begin_round(struct live_events *events);
static bool tell_piece(struct live_events *events);
static void open_scope(struct exchange *exchange, struct scope *scope);
static bool may_go_on(struct live_events *events);
static enum live_told tell_in(struct live_events *events, size_t at);
static void close_scope(struct exchange *exchange, const struct scope *scope);
static size_t next_part(const struct live_events *events);
static int64_t now_ms(const struct live_events *events);
static ptrdiff_t give(struct live_events *events, uint8_t *into, size_t capacity);
static void live_events_close(struct body_source *source);

enum next live_events_begin(struct exchange *exchange)
{
	struct live_events *const events = arena_take(exchange->arena, sizeof(*events));
	struct error err = {0};
	if (events == NULL) {
		error_set(&err, ERROR_NO_MEMORY, "The memory of the request ran out.");
		return exchange_fail(exchange, &err);
	}
	*events = (struct live_events){
		.source = {.read = live_events_read, .close = live_events_close},
		.exchange = exchange,
		.stage = STAGE_REST};
	buffer_init(&events->out, PIECE_MAX_BYTES);
	long_wait_init(&events->wait, exchange, exchange->context->shares.streams, 0);
	if (open_stream(events, &err) != 0) {
		buffer_release(&events->out);
		return exchange_fail(exchange, &err);
	}
	exchange_add_header(exchange, "Cache-Control", "no-cache");
	exchange_add_header(exchange, "X-Accel-Buffering", "no");
	return exchange_reply_stream(exchange, 200, "text/event-stream", &events->source);
}

static int open_stream(struct live_events *events, struct error *err)
{
	struct exchange *const exchange = events->exchange;
	const struct clock_source *const clock = exchange->context->clock;
	struct json_writer json;
	if (wants(exchange, "server")) {
		if (live_server_begin(&events->server, exchange, err) != 0)
			return -1;
		add_part(events, &events->server.part);
	}
	if (wants(exchange, "runs")) {
		live_runs_begin(&events->runs, exchange);
		add_part(events, &events->runs.part);
	}
	if (follow_replicas(events, err) != 0)
		return -1;
	if (events->part_count == 0)
		return error_set(err, ERROR_INVALID,
			"A stream needs runs=1, server=1 or replicas=BUCKET/RUN to follow.");
	live_text_begin(&events->out, "hello", &json);
	run_element_time(&json, "time", clock->wall_ms(clock));
	live_text_end(&events->out, &json);
	events->round_ms = now_ms(events) + ROUND_MS;
	events->judge_ms = now_ms(events) + JUDGE_MS;
	events->ping_ms = now_ms(events) + PING_MS;
	return long_wait_enter(&events->wait, err);
}

static bool wants(struct exchange *exchange, const char *name)
{
	struct span value;
	return exchange_query(exchange, name, &value) && !span_equal_text(value, "0");
}

static void add_part(struct live_events *events, struct live_part *part)
{
	ASSERT(events->part_count < PARTS_MAX);
	events->parts[events->part_count++] = part;
}

static int follow_replicas(struct live_events *events, struct error *err)
{
	size_t count;
	const struct query_parameter *const query =
		exchange_query_parameters(events->exchange, &count);
	for (size_t i = 0; i < count; i++)
		if (span_equal_text(query[i].name, "replicas") &&
			follow_one(events, query[i].value, err) != 0)
			return -1;
	return 0;
}

static int follow_one(struct live_events *events, struct span text, struct error *err)
{
	struct exchange *const exchange = events->exchange;
	struct buffer name;
	if (events->followed_count == FOLLOWED_MAX)
		return error_set(err, ERROR_INVALID,
			"A stream follows the replicas of at most %d runs.", FOLLOWED_MAX);
	buffer_init(&name, NAME_MAX_BYTES);
	const bool decoded = decode_percent(text, true, &name) && !buffer_failed(&name);
	const struct span copy = decoded ? arena_copy(exchange->arena, buffer_span(&name)) : text;
	buffer_release(&name);
	struct live_replicas *const replicas = &events->followed[events->followed_count++];
	if (live_replicas_begin(replicas, exchange, copy, err) != 0)
		return -1;
	add_part(events, &replicas->part);
	return 0;
}

static ptrdiff_t live_events_read(
	struct body_source *source, uint8_t *into, size_t capacity, struct error *err)
{
	struct live_events *const events = (struct live_events *)source;
	while (events->out.len == 0) {
		if (events->stage == STAGE_END)
			return 0;
		if (!advance(events))
			return SOURCE_WAIT;
		if (buffer_failed(&events->out))
			return error_set(err, ERROR_NO_MEMORY, "An event does not fit its buffer.");
	}
	return give(events, into, capacity);
}

/* False: the exchange waits, and may have been woken already, so nothing of it is touched after
 * that. */
static bool advance(struct live_events *events)
{
	if (is_over(events)) {
		take_leave(events);
		return true;
	}
	if (events->stage == STAGE_REST) {
		const int64_t left_ms = events->round_ms - now_ms(events);
		events->stage = STAGE_ROUND;
		if (left_ms > 0) {
			wait_for(events, left_ms);
			return false;
		}
	}
	if (events->stage == STAGE_ROUND) {
		begin_round(events);
		return true;
	}
	if (tell_piece(events))
		return true;
	/* Nothing was for this caller. Others get their turn before the next piece. */
	wait_for(events, TURN_MS);
	return false;
}

/* Whether the stream must end with `reconnect`: the server stops, and the client is to come to its
 * successor, or another caller got the place of the stream. */
static bool is_over(const struct live_events *events)
{
	struct error crowded = {0};
	return long_wait_is_stopping(&events->wait) ||
		long_wait_check(&events->wait, &crowded) != 0;
}

/* What was not told of an event that has begun is in the lists that the client fetches anew. */
static void take_leave(struct live_events *events)
{
	for (size_t i = 0; i < events->followed_count; i++)
		live_replicas_end_event(&events->followed[i], &events->out);
	live_text_event(&events->out, "reconnect", NULL, (struct span){NULL, 0});
	events->stage = STAGE_END;
}

static void wait_for(struct live_events *events, int64_t ms)
{
	change_feed_pause(
		store_change_feed(events->exchange->context->store), ms, &events->wait.waiter);
	long_wait_begun(&events->wait);
}

static void begin_round(struct live_events *events)
{
	const int64_t now = now_ms(events);
	bool any = now >= events->judge_ms;
	for (size_t i = 0; i < events->part_count; i++) {
		events->has_news[i] = events->parts[i]->look(events->parts[i], events->exchange);
		any = any || events->has_news[i];
	}
	events->round_ms = now + ROUND_MS;
	events->stage = any ? STAGE_TELL : STAGE_REST;
	if (now < events->ping_ms)
		return;
	live_text_ping(&events->out);
	events->ping_ms = now + PING_MS;
}

/* False when there is more to tell and nothing was printed. */
static bool tell_piece(struct live_events *events)
{
	const size_t at = next_part(events);
	struct scope scope;
	enum live_told told = LIVE_FAILED;
	open_scope(events->exchange, &scope);
	if (may_go_on(events))
		told = at < events->part_count ? tell_in(events, at) : LIVE_DONE;
	close_scope(events->exchange, &scope);
	if (told == LIVE_FAILED) {
		buffer_reset(&events->out);
		events->stage = STAGE_END;
	} else if (next_part(events) == events->part_count) {
		events->stage = STAGE_REST;
	}
	if (events->out.len > 0)
		events->ping_ms = now_ms(events) + PING_MS;
	return events->stage != STAGE_TELL || events->out.len > 0;
}

static void open_scope(struct exchange *exchange, struct scope *scope)
{
	*scope = (struct scope){exchange->arena, exchange->principal, exchange->session};
	exchange->arena = arena_new(ROUND_ARENA_BYTES);
}

static bool may_go_on(struct live_events *events)
{
	struct exchange *const exchange = events->exchange;
	struct error ignored = {0};
	if (identify_again(exchange, &ignored) != 0 || authorise(exchange, &ignored) != 0)
		return false;
	for (size_t i = 0; i < events->part_count; i++)
		if (!events->parts[i]->may(events->parts[i], exchange))
			return false;
	events->judge_ms = now_ms(events) + JUDGE_MS;
	return true;
}

static enum live_told tell_in(struct live_events *events, size_t at)
{
	struct live_part *const part = events->parts[at];
	const enum live_told told = part->tell(part, events->exchange, &events->out);
	events->has_news[at] = told == LIVE_MORE;
	return arena_overflowed(events->exchange->arena) ? LIVE_FAILED : told;
}

static void close_scope(struct exchange *exchange, const struct scope *scope)
{
	arena_free(exchange->arena);
	exchange->arena = scope->own_arena;
	exchange->principal = scope->own_principal;
	exchange->session = scope->own_session;
}

/* The first part with news; part_count: there is none. */
static size_t next_part(const struct live_events *events)
{
	size_t at = 0;
	while (at < events->part_count && !events->has_news[at])
		at++;
	return at;
}

static int64_t now_ms(const struct live_events *events)
{
	const struct clock_source *const clock = events->exchange->context->clock;
	return clock->monotonic_ms(clock);
}

static ptrdiff_t give(struct live_events *events, uint8_t *into, size_t capacity)
{
	ASSERT(events->out_at < events->out.len);
	const size_t left = events->out.len - events->out_at;
	const size_t len = left < capacity ? left : capacity;
	memcpy(into, events->out.data + events->out_at, len);
	events->out_at += len;
	if (events->out_at == events->out.len) {
		buffer_release(&events->out);
		buffer_init(&events->out, PIECE_MAX_BYTES);
		events->out_at = 0;
	}
	return (ptrdiff_t)len;
}

static void live_events_close(struct body_source *source)
{
	buffer_release(&((struct live_events *)source)->out);
}
