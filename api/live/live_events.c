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

#include "api/auth/authorise.h"
#include "api/auth/identify.h"
#include "api/exchange/event_stream.h"
#include "api/live/live_replicas.h"
#include "api/live/live_runs.h"
#include "api/live/live_server.h"
#include "api/live/run_element.h"
#include "base/encode.h"

enum {
	FOLLOWED_MAX = 4,
	PARTS_MAX = FOLLOWED_MAX + 2,
	NAME_MAX_BYTES = 1024,
	ROUND_MS = 1000,
	JUDGE_MS = 8 * 1000 /* with a round more, a revoked key hears less than ten seconds */
};

enum stage { STAGE_ROUND, STAGE_TELL, STAGE_REST };

struct live_events {
	struct event_stream stream; /* first */
	struct live_server server;
	struct live_runs runs;
	struct live_replicas followed[FOLLOWED_MAX];
	size_t followed_count;
	struct live_part *parts[PARTS_MAX]; /* those that the stream has */
	bool has_news[PARTS_MAX];           /* in this round, and not all told */
	size_t part_count;
	enum stage stage;
	/* on the monotonic clock: when the next round and judgement are due */
	int64_t round_ms;
	int64_t judge_ms;
};

static int open_stream(struct live_events *events, struct error *err);
static int follow_replicas(struct live_events *events, struct error *err);
static int follow_one(struct live_events *events, struct span text, struct error *err);
static bool wants(struct exchange *exchange, const char *name);
static void add_part(struct live_events *events, struct live_part *part);
static bool live_events_advance(struct event_stream *stream);
static void live_events_leave(struct event_stream *stream);
static void begin_round(struct live_events *events);
static bool tell_piece(struct live_events *events);
static bool may_go_on(struct live_events *events);
static enum live_told tell_in(struct live_events *events, size_t at);
static size_t next_part(const struct live_events *events);

static const struct event_stream_kind kind = {
	.advance = live_events_advance, .leave = live_events_leave};

enum next live_events_begin(struct exchange *exchange)
{
	struct live_events *const events = arena_take(exchange->arena, sizeof(*events));
	struct error err = {0};
	if (events == NULL) {
		error_set(&err, ERROR_NO_MEMORY, "The memory of the request ran out.");
		return exchange_fail(exchange, &err);
	}
	*events = (struct live_events){.stage = STAGE_REST};
	event_stream_init(&events->stream, &kind, exchange);
	return open_stream(events, &err) == 0 ? event_stream_reply(&events->stream)
					      : event_stream_fail(&events->stream, &err);
}

static int open_stream(struct live_events *events, struct error *err)
{
	struct exchange *const exchange = events->stream.exchange;
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
	server_event_begin(&events->stream.out, "hello", &json);
	run_element_time(&json, "time", clock->wall_ms(clock));
	server_event_end(&events->stream.out, &json);
	events->round_ms = event_stream_now_ms(&events->stream) + ROUND_MS;
	events->judge_ms = event_stream_now_ms(&events->stream) + JUDGE_MS;
	return 0;
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
		exchange_query_parameters(events->stream.exchange, &count);
	for (size_t i = 0; i < count; i++)
		if (span_equal_text(query[i].name, "replicas") &&
			follow_one(events, query[i].value, err) != 0)
			return -1;
	return 0;
}

static int follow_one(struct live_events *events, struct span text, struct error *err)
{
	struct exchange *const exchange = events->stream.exchange;
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

static bool live_events_advance(struct event_stream *stream)
{
	struct live_events *const events = (struct live_events *)stream;
	if (events->stage == STAGE_REST) {
		const int64_t left_ms = events->round_ms - event_stream_now_ms(stream);
		events->stage = STAGE_ROUND;
		if (left_ms > 0)
			return event_stream_pause(stream, left_ms);
	}
	if (events->stage == STAGE_ROUND) {
		begin_round(events);
		return true;
	}
	/* Where nothing was for this caller, others get their turn before the next piece. */
	return tell_piece(events) || event_stream_yield(stream);
}

/* What was not told of an event that has begun is in the lists that the client fetches anew. */
static void live_events_leave(struct event_stream *stream)
{
	struct live_events *const events = (struct live_events *)stream;
	for (size_t i = 0; i < events->followed_count; i++)
		live_replicas_end_event(&events->followed[i], &stream->out);
	server_event_print(&stream->out, "reconnect", NULL, (struct span){NULL, 0});
}

static void begin_round(struct live_events *events)
{
	const int64_t now = event_stream_now_ms(&events->stream);
	bool any = now >= events->judge_ms;
	for (size_t i = 0; i < events->part_count; i++) {
		events->has_news[i] =
			events->parts[i]->look(events->parts[i], events->stream.exchange);
		any = any || events->has_news[i];
	}
	events->round_ms = now + ROUND_MS;
	events->stage = any ? STAGE_TELL : STAGE_REST;
	event_stream_ping(&events->stream);
}

/* False when there is more to tell and nothing was printed. */
static bool tell_piece(struct live_events *events)
{
	struct event_stream *const stream = &events->stream;
	const size_t at = next_part(events);
	struct event_scope scope;
	enum live_told told = LIVE_FAILED;
	event_scope_open(&scope, stream->exchange);
	if (may_go_on(events))
		told = at < events->part_count ? tell_in(events, at) : LIVE_DONE;
	event_scope_close(&scope, stream->exchange);
	if (told == LIVE_FAILED) {
		buffer_reset(&stream->out);
		stream->has_ended = true;
	} else if (next_part(events) == events->part_count) {
		events->stage = STAGE_REST;
	}
	return stream->has_ended || events->stage != STAGE_TELL || stream->out.len > 0;
}

static bool may_go_on(struct live_events *events)
{
	struct exchange *const exchange = events->stream.exchange;
	struct error ignored = {0};
	if (identify_again(exchange, &ignored) != 0 || authorise(exchange, &ignored) != 0)
		return false;
	for (size_t i = 0; i < events->part_count; i++)
		if (!events->parts[i]->may(events->parts[i], exchange))
			return false;
	events->judge_ms = event_stream_now_ms(&events->stream) + JUDGE_MS;
	return true;
}

static enum live_told tell_in(struct live_events *events, size_t at)
{
	struct live_part *const part = events->parts[at];
	const enum live_told told = part->tell(part, events->stream.exchange, &events->stream.out);
	events->has_news[at] = told == LIVE_MORE;
	return arena_overflowed(events->stream.exchange->arena) ? LIVE_FAILED : told;
}

/* The first part with news; part_count: there is none. */
static size_t next_part(const struct live_events *events)
{
	size_t at = 0;
	while (at < events->part_count && !events->has_news[at])
		at++;
	return at;
}
