#include "api/steps/replicas.h"

#include "api/steps/run_wait.h"
#include "api/steps/steps_request.h"
#include "storage/runs/replica.h"

enum {
	PAGE_REPLICAS = 100,
	REPLICA_BODY_MAX_BYTES = 32 * 1024,
	LIST_BODY_MAX_BYTES = REPLICA_LIST_MAX * REPLICA_BODY_MAX_BYTES
};

static struct span replica_id(const struct exchange *exchange)
{
	return exchange->parameters[2];
}

static enum next reply(struct exchange *exchange, const struct replica_message *replica)
{
	struct buffer body;
	buffer_init(&body, REPLICA_BODY_MAX_BYTES);
	replica_message_print(replica, &body);
	exchange_add_header(exchange, "Cache-Control", "no-store");
	return steps_request_reply_json(exchange, 200, &body);
}

enum next put_replica_begin(struct exchange *exchange)
{
	struct error err = {0};
	if (replica_check_id("A replica's id", replica_id(exchange), &err) != 0)
		return exchange_fail(exchange, &err);
	return exchange_accept_small(exchange, REPLICA_MESSAGE_MAX_BYTES);
}

enum next put_replica_finish(struct exchange *exchange)
{
	struct replica_message said;
	struct replica_message *const answer = arena_take(exchange->arena, sizeof(*answer));
	struct error err = {0};
	bool saved = false;
	ASSERT(answer != NULL);
	if (replica_message_parse(exchange_body(exchange), exchange->arena, &said, &err) != 0)
		return exchange_fail(exchange, &err);
	if (replica_put(exchange->context->store, steps_request_bucket(exchange),
		    steps_request_run(exchange), replica_id(exchange), &said, exchange->arena,
		    answer, &saved, &err) != 0)
		return exchange_fail(exchange, &err);
	if (saved)
		return reply(exchange, answer);
	return run_wait_with(exchange,
		replica_save_start(exchange->context->store, steps_request_bucket(exchange),
			steps_request_run(exchange), replica_id(exchange), exchange_wake_owner,
			exchange),
		answer);
}

enum next put_replica_resume(struct exchange *exchange)
{
	struct run_outcome outcome;
	struct error err = {0};
	if (run_wait_outcome(exchange, &outcome, &err) != 0)
		return exchange_fail(exchange, &err);
	return reply(exchange, run_wait_answer(exchange));
}

enum next get_replica_begin(struct exchange *exchange)
{
	struct replica_message replica;
	struct error err = {0};
	if (replica_find(exchange->context->store, steps_request_bucket(exchange),
		    steps_request_run(exchange), replica_id(exchange), exchange->arena, &replica,
		    &err) != 0)
		return exchange_fail(exchange, &err);
	return reply(exchange, &replica);
}

enum next delete_replica_begin(struct exchange *exchange)
{
	return run_wait_for(exchange,
		replica_remove_start(exchange->context->store, steps_request_bucket(exchange),
			steps_request_run(exchange), replica_id(exchange), exchange_wake_owner,
			exchange));
}

enum next list_replicas_begin(struct exchange *exchange)
{
	struct replica_list_message list;
	struct span after = {0};
	struct error err = {0};
	uint64_t limit;
	enum next next;
	exchange_query(exchange, "after", &after);
	if (!steps_request_limit(exchange, PAGE_REPLICAS, REPLICA_LIST_MAX, &limit, &next))
		return next;
	if (replica_list(exchange->context->store, steps_request_bucket(exchange),
		    steps_request_run(exchange), after, limit, exchange->arena, &list, &err) != 0)
		return exchange_fail(exchange, &err);
	struct buffer body;
	buffer_init(&body, LIST_BODY_MAX_BYTES);
	replica_list_message_print(&list, &body);
	exchange_add_header(exchange, "Cache-Control", "no-store");
	return steps_request_reply_json(exchange, 200, &body);
}
