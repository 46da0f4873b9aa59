/* An event is printed in pieces, so that a stream holds few replicas at a time however many there
 * are: the run's facts, the removed ones and the first replicas, then more replicas, then the
 * end. */
#include "api/live/live_replicas.h"

#include "api/auth/authorise.h"
#include "api/exchange/server_event.h"
#include "base/digest/xxh3.h"
#include "storage/core/run_feed.h"

enum {
	PIECE_REPLICAS = 200,
	EVENT_REPLICAS = 2000,
	EVENT_REMOVED = 2000,
	REPLICA_BYTES = 32 * 1024
};

static int learn_facts(
	struct live_replicas *replicas, struct exchange *exchange, struct error *err);
static bool live_replicas_may(struct live_part *part, struct exchange *exchange);
static int judge(struct live_replicas *replicas, struct exchange *exchange, struct error *err);
static bool live_replicas_look(struct live_part *part, struct exchange *exchange);
static enum live_told live_replicas_tell(
	struct live_part *part, struct exchange *exchange, struct buffer *out);
static enum live_told reset(struct live_replicas *replicas, struct exchange *exchange,
	const char *reason, struct buffer *out);
static enum live_told begin_event(struct live_replicas *replicas, struct exchange *exchange,
	const struct replica_list_message *list, struct buffer *out);
static void print_facts(const struct replica_list_message *list, struct json_writer *json);
static uint64_t hash_facts(const struct replica_list_message *list);
static void print_replicas(struct live_replicas *replicas, const struct replica_list_message *list);

int live_replicas_begin(struct live_replicas *replicas, struct exchange *exchange, struct span name,
	struct error *err)
{
	struct span run = name;
	struct span bucket;
	*replicas = (struct live_replicas){.part = {.may = live_replicas_may,
						   .look = live_replicas_look,
						   .tell = live_replicas_tell},
		.name = name};
	if (span_find(name, '/') <= 0 || !span_split(&run, '/', &bucket) || run.len == 0)
		return error_set(err, ERROR_INVALID,
			"The parameter replicas must be the name of a run, BUCKET/RUN.");
	const struct run_ref ref = run_named(bucket, run);
	replicas->follow.run = ref;
	if (judge(replicas, exchange, err) != 0)
		return -1;
	replicas->runs = run_feed_last(store_run_feed(exchange->context->store));
	return replica_follow_begin(exchange->context->store, &ref, &replicas->follow, err) == 0
		? learn_facts(replicas, exchange, err)
		: -1;
}

void live_replicas_end_event(struct live_replicas *replicas, struct buffer *out)
{
	if (!replicas->is_telling)
		return;
	json_writer_end(&replicas->json, ']');
	server_event_end(out, &replicas->json);
	replicas->is_telling = false;
}

static int learn_facts(struct live_replicas *replicas, struct exchange *exchange, struct error *err)
{
	struct replica_message none;
	struct replica_list_message list = {.replicas = &none, .count = 1};
	bool more;
	if (replica_follow_read(exchange->context->store, &replicas->follow, exchange->arena, &list,
		    &more, err) != 0)
		return -1;
	replicas->facts = hash_facts(&list);
	return 0;
}

static bool live_replicas_may(struct live_part *part, struct exchange *exchange)
{
	struct live_replicas *const replicas = (struct live_replicas *)part;
	struct error err = {0};
	return replicas->has_ended || judge(replicas, exchange, &err) == 0 ||
		err.kind == ERROR_NO_BUCKET;
}

static int judge(struct live_replicas *replicas, struct exchange *exchange, struct error *err)
{
	const struct run_ref *const run = &replicas->follow.run;
	struct bucket_ref bucket = run->bucket;
	const char *const key = arena_format(
		exchange->arena, "%.*s/", (int)run->name.len, (const char *)run->name.data);
	if (key == NULL)
		return error_set(err, ERROR_NO_MEMORY, "The memory of a request ran out.");
	return authorise_owned_key(exchange, &bucket, span_text(key), PERMISSION_READ, err);
}

/* A change of any run may be one of this run's head. */
static bool live_replicas_look(struct live_part *part, struct exchange *exchange)
{
	struct live_replicas *const replicas = (struct live_replicas *)part;
	struct store *const store = exchange->context->store;
	const uint64_t runs = run_feed_last(store_run_feed(store));
	if (replicas->has_ended)
		return false;
	const bool changed = runs != replicas->runs;
	replicas->runs = runs;
	return replica_follow_look(store, &replicas->follow) || changed;
}

static enum live_told live_replicas_tell(
	struct live_part *part, struct exchange *exchange, struct buffer *out)
{
	struct live_replicas *const replicas = (struct live_replicas *)part;
	struct replica_list_message list = {.replicas = arena_take_array(exchange->arena,
						    PIECE_REPLICAS, sizeof(*list.replicas)),
		.count = PIECE_REPLICAS};
	struct error err = {0};
	bool more;
	if (list.replicas == NULL)
		return LIVE_FAILED;
	if (replica_follow_read(exchange->context->store, &replicas->follow, exchange->arena, &list,
		    &more, &err) != 0) {
		if (replicas->is_telling ||
			(err.kind != ERROR_NO_RUN && err.kind != ERROR_NO_BUCKET))
			return LIVE_FAILED;
		replicas->has_ended = true;
		return reset(replicas, exchange, "run_removed", out);
	}
	if (!replicas->is_telling) {
		const enum live_told told = begin_event(replicas, exchange, &list, out);
		if (told != LIVE_MORE)
			return told;
	}
	print_replicas(replicas, &list);
	if (more && replicas->told < EVENT_REPLICAS)
		return LIVE_MORE;
	live_replicas_end_event(replicas, out);
	return LIVE_DONE;
}

static enum live_told reset(struct live_replicas *replicas, struct exchange *exchange,
	const char *reason, struct buffer *out)
{
	struct json_writer json;
	struct error ignored = {0};
	server_event_begin(out, "reset", &json);
	json_writer_text(&json, "reason", span_text(reason));
	json_writer_text(&json, "run", replicas->name);
	server_event_end(out, &json);
	if (replicas->has_ended)
		return LIVE_DONE;
	const struct run_ref run = replicas->follow.run;
	return replica_follow_begin(exchange->context->store, &run, &replicas->follow, &ignored) ==
			0
		? LIVE_DONE
		: LIVE_FAILED;
}

/* LIVE_MORE: the event has begun. LIVE_DONE: there is nothing to tell, or a reset was told. */
static enum live_told begin_event(struct live_replicas *replicas, struct exchange *exchange,
	const struct replica_list_message *list, struct buffer *out)
{
	struct span *const gone = arena_take_array(exchange->arena, EVENT_REMOVED, sizeof(*gone));
	size_t count;
	if (gone == NULL)
		return LIVE_FAILED;
	if (!replica_follow_removed(exchange->context->store, &replicas->follow, exchange->arena,
		    gone, EVENT_REMOVED, &count))
		return reset(replicas, exchange, "too_far_behind", out);
	const uint64_t facts = hash_facts(list);
	if (count == 0 && list->count == 0 && facts == replicas->facts)
		return LIVE_DONE;
	replicas->facts = facts;
	replicas->is_telling = true;
	replicas->told = 0;
	server_event_begin(out, "replicas", &replicas->json);
	json_writer_text(&replicas->json, "run", replicas->name);
	print_facts(list, &replicas->json);
	json_writer_array(&replicas->json, "removed");
	for (size_t i = 0; i < count; i++)
		json_writer_text(&replicas->json, NULL, gone[i]);
	json_writer_end(&replicas->json, ']');
	json_writer_array(&replicas->json, "replicas");
	return LIVE_MORE;
}

static void print_facts(const struct replica_list_message *list, struct json_writer *json)
{
	if (list->has_head)
		json_writer_u64(json, "head", list->head);
	rollback_message_print(&list->rollback, json);
	fleet_counts_print(&list->counts, json);
}

/* The age of reports is not among them: it changes each second, and is told with the next event. */
static uint64_t hash_facts(const struct replica_list_message *list)
{
	struct replica_list_message facts = *list;
	struct buffer text;
	struct json_writer json;
	facts.counts.has_report = false;
	buffer_init(&text, REPLICA_BYTES);
	json_writer_init(&json, &text);
	json_writer_object(&json, NULL);
	print_facts(&facts, &json);
	json_writer_end(&json, '}');
	const uint64_t hash = xxh3_64(buffer_span(&text));
	buffer_release(&text);
	return hash;
}

static void print_replicas(struct live_replicas *replicas, const struct replica_list_message *list)
{
	struct buffer one;
	buffer_init(&one, REPLICA_BYTES);
	for (size_t i = 0; i < list->count; i++) {
		buffer_reset(&one);
		replica_message_print(&list->replicas[i], &one);
		json_writer_raw(&replicas->json, NULL, buffer_span(&one));
	}
	buffer_release(&one);
	replicas->told += list->count;
}
