#include "api/steps/handlers.h"

#include "api/steps/steps_request.h"
#include "storage/runs/replica.h"
#include "storage/scrub/scrub.h"

enum {
	PAGE_REPLICAS = 100,
	REPLICA_BODY_MAX_BYTES = 32 * 1024,
	LIST_BODY_MAX_BYTES = REPLICA_LIST_MAX * REPLICA_BODY_MAX_BYTES
};

static struct replica_ref replica_of(const struct exchange *exchange);
static void ask_for_chunks(
	struct exchange *exchange, uint64_t step, struct replica_message *answer);
static enum next reply(struct exchange *exchange, const struct replica_message *replica);

enum next put_replica_begin(struct exchange *exchange)
{
	struct error err = {0};
	if (replica_check_id("A replica's id", replica_of(exchange).id, &err) != 0)
		return exchange_fail(exchange, &err);
	return exchange_accept_small(exchange, REPLICA_MESSAGE_MAX_BYTES);
}

enum next put_replica_finish(struct exchange *exchange)
{
	const struct replica_ref ref = replica_of(exchange);
	struct store *const store = exchange->context->store;
	struct replica_message said;
	struct replica_message *const answer = arena_take(exchange->arena, sizeof(*answer));
	struct error err = {0};
	ASSERT(answer != NULL);
	if (replica_message_parse(exchange_body(exchange), exchange->arena, &said, &err) != 0)
		return exchange_fail(exchange, &err);
	const int saved = replica_put(store, &ref, &said, exchange->arena, answer, &err);
	if (saved < 0)
		return exchange_fail(exchange, &err);
	if (said.has_step)
		ask_for_chunks(exchange, said.step, answer);
	if (saved == 1)
		return reply(exchange, answer);
	exchange->state = answer;
	return exchange_await(exchange, replica_save_call(store, &ref));
}

enum next put_replica_resume(struct exchange *exchange)
{
	struct error err = {0};
	if (call_outcome(exchange->call, &err) != 0)
		return exchange_fail(exchange, &err);
	return reply(exchange, exchange->state);
}

enum next get_replica_begin(struct exchange *exchange)
{
	const struct replica_ref ref = replica_of(exchange);
	struct replica_message replica;
	struct error err = {0};
	if (replica_find(exchange->context->store, &ref, exchange->arena, &replica, &err) != 0)
		return exchange_fail(exchange, &err);
	return reply(exchange, &replica);
}

enum next delete_replica_begin(struct exchange *exchange)
{
	const struct replica_ref ref = replica_of(exchange);
	return exchange_await(exchange, replica_remove_call(exchange->context->store, &ref));
}

enum next list_replicas_begin(struct exchange *exchange)
{
	struct replica_scan scan = {.run = steps_request_run(exchange)};
	struct replica_list_message list;
	struct error err = {0};
	uint64_t limit;
	enum next next;
	exchange_query(exchange, "after", &scan.after);
	if (!steps_request_limit(exchange, PAGE_REPLICAS, REPLICA_LIST_MAX, &limit, &next))
		return next;
	scan.limit = limit;
	if (replica_list(exchange->context->store, &scan, exchange->arena, &list, &err) != 0)
		return exchange_fail(exchange, &err);
	struct buffer body;
	buffer_init(&body, LIST_BODY_MAX_BYTES);
	replica_list_message_print(&list, &body);
	exchange_add_header(exchange, "Cache-Control", "no-store");
	return steps_request_reply_json(exchange, 200, &body);
}

static struct replica_ref replica_of(const struct exchange *exchange)
{
	ASSERT(exchange->parameter_count >= 3);
	return (struct replica_ref){steps_request_run(exchange), exchange->parameters[2]};
}

/* Asks the worker for what the store has lost of the step that it holds. */
static void ask_for_chunks(struct exchange *exchange, uint64_t step, struct replica_message *answer)
{
	const struct run_ref run = steps_request_run(exchange);
	const struct want_place place = {.bucket = run.bucket.name, .run = run.name, .step = step};
	struct chunk_want wants[REPLICA_WANTS_MAX];
	const size_t count = scrub_ask(
		store_parts(exchange->context->store)->scrub, &place, wants, REPLICA_WANTS_MAX);
	if (count == 0)
		return;
	answer->wants = arena_take_array(exchange->arena, count, sizeof(*answer->wants));
	if (answer->wants == NULL)
		return;
	for (size_t i = 0; i < count; i++) {
		struct replica_want *const want = &answer->wants[answer->want_count++];
		*want = (struct replica_want){.size = wants[i].file_size,
			.digest = wants[i].file_digest,
			.offset = wants[i].offset,
			.length = wants[i].length};
		chunk_id_format(&wants[i].id, want->chunk);
	}
}

static enum next reply(struct exchange *exchange, const struct replica_message *replica)
{
	struct buffer body;
	buffer_init(&body, REPLICA_BODY_MAX_BYTES);
	replica_message_print(replica, &body);
	exchange_add_header(exchange, "Cache-Control", "no-store");
	return steps_request_reply_json(exchange, 200, &body);
}
