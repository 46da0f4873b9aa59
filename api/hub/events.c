/* The stream works in rounds. A round reads a bounded number of changes from the feed and prints
 * them as one event. The next round begins only when that event is sent, so a slow reader falls
 * behind in the feed and takes no memory here. Stages:
 *
 *   LOOK --changes--> LOOK
 *   LOOK --no more changes: prints `ready` or a ping--> REST --waits--> RESTED
 *   RESTED --there is a change: a pause, more may come--> LOOK
 *   RESTED --the time is over--> LOOK
 *   any --the caller may not go on, the position is lost, or the server stops--> END
 *
 * Each round checks again whether the caller may know of the bucket and list its files, with the
 * keys and grants of that moment. */
#include "api/hub/handlers.h"

#include "api/auth/authorise.h"
#include "api/auth/identify.h"
#include "api/exchange/event_stream.h"
#include "api/hub/event_text.h"
#include "storage/buckets/bucket.h"
#include "storage/core/change_feed.h"
#include "storage/files/tree_path.h"

enum {
	ROUND_CHANGES = 200,
	PAUSE_MS = 150,
	REST_MS = 10 * 1000 /* a revoked key may listen for so long */
};

enum stage { STAGE_LOOK, STAGE_REST, STAGE_RESTED };

struct events {
	struct event_stream stream; /* first */
	struct change_feed *feed;
	struct bucket_ref bucket; /* the bucket that had the name when the stream began */
	struct change_position position;
	enum stage stage;
	uint64_t generation; /* taken before the last look */
	bool is_lost;        /* the feed no longer has the changes after the position */
	bool is_ready;       /* `ready` was printed */
};

static bool events_advance(struct event_stream *stream);
static void events_leave(struct event_stream *stream);
static void print_reset(struct events *events);
static void print_cursor_event(struct events *events, const char *name);
static void print_cursor(const struct events *events, char out[EVENT_CURSOR_BYTES]);
static bool rest(struct events *events);
static void look(struct events *events);
static bool look_in(struct events *events);
static bool may_go_on(struct events *events, int64_t *out_updated_ms);
static bool send_changes(struct events *events, const struct change_seen *seen, size_t count);
static int choose(const struct events *events, const struct change_seen *seen, size_t count,
	struct event_change *out, size_t *out_chosen);
static int may_list(const struct events *events, struct span path);
static bool is_among(const struct event_change *changes, size_t count, struct span path);
static int look_up(
	struct events *events, struct event_change *changes, size_t count, struct error *err);
static void settle(struct events *events);
static int open_stream(struct events *events, struct error *err);
static int find_position(struct events *events, int64_t updated_ms, struct error *err);
static int place_at_cursor(struct events *events, struct span text, struct error *err);

static const struct event_stream_kind kind = {.advance = events_advance, .leave = events_leave};

enum next events_begin(struct exchange *exchange)
{
	struct events *const events = arena_take(exchange->arena, sizeof(*events));
	struct error err = {0};
	if (events == NULL) {
		error_set(&err, ERROR_NO_MEMORY, "The memory of the request ran out.");
		return exchange_fail(exchange, &err);
	}
	*events = (struct events){.feed = store_change_feed(exchange->context->store)};
	event_stream_init(&events->stream, &kind, exchange);
	return open_stream(events, &err) == 0 ? event_stream_reply(&events->stream)
					      : event_stream_fail(&events->stream, &err);
}

static bool events_advance(struct event_stream *stream)
{
	struct events *const events = (struct events *)stream;
	if (events->stage == STAGE_REST)
		return rest(events);
	const bool changed = events->stage == STAGE_RESTED &&
		change_feed_generation(events->feed, events->bucket.id) != events->generation;
	events->stage = STAGE_LOOK;
	if (changed)
		return event_stream_pause(stream, PAUSE_MS);
	look(events);
	/* Where no change was for this caller, others get their turn before the next look. */
	return stream->has_ended || events->stage != STAGE_LOOK || stream->out.len > 0 ||
		event_stream_yield(stream);
}

static void events_leave(struct event_stream *stream)
{
	struct events *const events = (struct events *)stream;
	if (events->is_lost)
		print_reset(events);
	else
		print_cursor_event(events, "reconnect");
}

static void print_reset(struct events *events)
{
	server_event_print(&events->stream.out, "reset", "reason", span_text("cursor_too_old"));
}

/* Prints an event that has only the cursor. */
static void print_cursor_event(struct events *events, const char *name)
{
	char cursor[EVENT_CURSOR_BYTES];
	print_cursor(events, cursor);
	server_event_print(&events->stream.out, name, "cursor", span_text(cursor));
}

static void print_cursor(const struct events *events, char out[EVENT_CURSOR_BYTES])
{
	const struct event_cursor cursor = {
		change_feed_id(events->feed), events->bucket.id, events->position};
	event_cursor_print(&cursor, events->stream.exchange->context->token_key, out);
}

/* False, as event_stream_pause. */
static bool rest(struct events *events)
{
	struct event_stream *const stream = &events->stream;
	const int64_t left_ms = stream->ping_ms - event_stream_now_ms(stream);
	events->stage = STAGE_RESTED;
	change_feed_wait(events->feed, events->bucket.id, events->generation,
		left_ms < REST_MS ? left_ms : REST_MS, &stream->wait.waiter);
	long_wait_begun(&stream->wait);
	return false;
}

static void look(struct events *events)
{
	struct event_scope scope;
	ASSERT(events->stage == STAGE_LOOK && events->stream.out.len == 0);
	events->generation = change_feed_generation(events->feed, events->bucket.id);
	event_scope_open(&scope, events->stream.exchange);
	if (!look_in(events))
		events->stream.has_ended = true;
	event_scope_close(&scope, events->stream.exchange);
}

static bool look_in(struct events *events)
{
	struct arena *const arena = events->stream.exchange->arena;
	struct change_page page = {
		.changes = arena_take_array(arena, ROUND_CHANGES, sizeof(*page.changes)),
		.limit = ROUND_CHANGES};
	int64_t updated_ms;
	if (page.changes == NULL || !may_go_on(events, &updated_ms))
		return false;
	if (events->is_lost ||
		!change_feed_read(events->feed, events->bucket.id, updated_ms, &events->position,
			arena, &page)) {
		print_reset(events);
		return false;
	}
	if (page.count > 0 && !send_changes(events, page.changes, page.count))
		return false;
	if (!page.has_more)
		settle(events);
	return true;
}

/* Whether the same bucket still exists and the caller may still know of it. */
static bool may_go_on(struct events *events, int64_t *out_updated_ms)
{
	struct exchange *const exchange = events->stream.exchange;
	struct store *const store = exchange->context->store;
	struct bucket bucket;
	struct bucket_totals totals;
	struct error ignored = {0};
	if (identify_again(exchange, &ignored) != 0 || authorise(exchange, &ignored) != 0 ||
		bucket_find(store, events->bucket, exchange->arena, &bucket, &ignored) != 0 ||
		bucket_totals_find(store, &bucket, 1, &totals, &ignored) != 0)
		return false;
	*out_updated_ms =
		totals.updated_ms > bucket.created_ms ? totals.updated_ms : bucket.created_ms;
	return true;
}

static bool send_changes(struct events *events, const struct change_seen *seen, size_t count)
{
	struct exchange *const exchange = events->stream.exchange;
	struct event_change *const changes =
		arena_take_array(exchange->arena, count + 1, sizeof(*changes));
	struct error ignored = {0};
	char cursor[EVENT_CURSOR_BYTES];
	size_t chosen;
	if (changes == NULL || choose(events, seen, count, changes, &chosen) != 0)
		return false;
	ASSERT(chosen <= count);
	if (look_up(events, changes, chosen, &ignored) != 0 || arena_overflowed(exchange->arena))
		return false;
	print_cursor(events, cursor);
	event_text_changes(&events->stream.out, cursor, changes, chosen);
	return true;
}

/* Chooses each path once, with its state before the first of its changes. Leaves out paths that the
 * caller may not list and paths that listings do not show. */
static int choose(const struct events *events, const struct change_seen *seen, size_t count,
	struct event_change *out, size_t *out_chosen)
{
	const int lists_all = may_list(events, (struct span){NULL, 0});
	int listed = lists_all;
	*out_chosen = 0;
	for (size_t i = 0; listed >= 0 && i < count; i++) {
		if (!tree_path_is_shown(seen[i].key) || is_among(out, *out_chosen, seen[i].key))
			continue;
		listed = lists_all == 1 ? 1 : may_list(events, seen[i].key);
		if (listed == 1)
			out[(*out_chosen)++] = (struct event_change){
				.path = seen[i].key, .existed = seen[i].existed};
	}
	return listed < 0 ? -1 : 0;
}

/* Whether the caller may list the path, or with an empty path all of them: 1, 0, or -1 when that
 * could not be found out. */
static int may_list(const struct events *events, struct span path)
{
	struct bucket_ref bucket = events->bucket;
	struct error ignored = {0};
	return authorise_permits(events->stream.exchange, &bucket, path, PERMISSION_LIST, &ignored);
}

static bool is_among(const struct event_change *changes, size_t count, struct span path)
{
	for (size_t i = 0; i < count; i++)
		if (span_equal(changes[i].path, path))
			return true;
	return false;
}

/* Finds the files as they are now. tree_find gives them in the order of the paths. */
static int look_up(
	struct events *events, struct event_change *changes, size_t count, struct error *err)
{
	struct exchange *const exchange = events->stream.exchange;
	struct span *const paths = arena_take_array(exchange->arena, count + 1, sizeof(*paths));
	struct tree tree;
	for (size_t i = 0; paths != NULL && i < count; i++)
		paths[i] = changes[i].path;
	const struct tree_find_params params = {
		.bucket = events->bucket, .paths = paths, .count = count};
	if (paths == NULL ||
		tree_find(exchange->context->store, &params, exchange->arena, &tree, err) != 0)
		return -1;
	for (size_t i = 0, at = 0; i < count && at < tree.count; i++)
		if (span_equal(tree.entries[at].path, changes[i].path))
			changes[i].file = &tree.entries[at++];
	return 0;
}

/* For a round that found no more changes: the first time the replay is complete, later a ping may
 * be due. */
static void settle(struct events *events)
{
	if (!events->is_ready)
		print_cursor_event(events, "ready");
	else
		event_stream_ping(&events->stream);
	events->is_ready = true;
	events->stage = STAGE_REST;
}

static int open_stream(struct events *events, struct error *err)
{
	struct exchange *const exchange = events->stream.exchange;
	struct store *const store = exchange->context->store;
	struct bucket bucket;
	struct bucket_totals totals;
	if (bucket_find(store, exchange_bucket(exchange), exchange->arena, &bucket, err) != 0 ||
		bucket_totals_find(store, &bucket, 1, &totals, err) != 0)
		return -1;
	events->bucket = (struct bucket_ref){exchange->parameters[0], bucket.id};
	return find_position(events,
		totals.updated_ms > bucket.created_ms ? totals.updated_ms : bucket.created_ms, err);
}

static int find_position(struct events *events, int64_t updated_ms, struct error *err)
{
	struct exchange *const exchange = events->stream.exchange;
	struct span text;
	int64_t since_ms = updated_ms;
	if (exchange_query(exchange, "cursor", &text))
		return place_at_cursor(events, text, err);
	if (exchange_query(exchange, "since", &text) && !clock_parse_http(text, &since_ms))
		return error_set(err, ERROR_INVALID,
			"The parameter since must be a time, such as the updatedAt of a bucket.");
	events->is_lost = !change_feed_seek(
		events->feed, events->bucket.id, since_ms, updated_ms, &events->position);
	return 0;
}

/* A cursor of another bucket, which had the name then, is lost, and so is one that this server can
 * no longer read. */
static int place_at_cursor(struct events *events, struct span text, struct error *err)
{
	struct event_cursor cursor = {.bucket = 0};
	if (!event_cursor_parse(text, events->stream.exchange->context->token_key, &cursor) &&
		!event_cursor_is_like(text))
		return error_set(
			err, ERROR_INVALID, "The parameter cursor must be a value from an event.");
	events->position = cursor.position;
	if (cursor.life != change_feed_id(events->feed))
		events->position.number = 0;
	events->is_lost = cursor.bucket != events->bucket.id;
	return 0;
}
