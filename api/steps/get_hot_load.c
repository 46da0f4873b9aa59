#include "api/steps/get_hot_load.h"

#include <stdlib.h>

#include "api/steps/hot_load_call.h"
#include "api/steps/steps_request.h"
#include "base/json_node.h"
#include "storage/account.h"
#include "storage/hot_load.h"
#include "storage/replica.h"

enum { REPLICAS_MOST = 10000, BODY_MAX_BYTES = 8 * 1024 * 1024 };

struct status {
	struct exchange *exchange;
	const struct hot_load_call *call;
	struct replica_message *replicas;
	size_t count;
	struct hot_load_newest newest;
	/* The identity of the step that was asked for last: replicas come sorted by step. */
	bool has_named;
	uint64_t named_step;
	struct span named;
};

static int by_step(const void *const a, const void *const b)
{
	const struct replica_message *const one = a;
	const struct replica_message *const two = b;
	if (one->has_step != two->has_step)
		return one->has_step ? 1 : -1;
	return one->step < two->step ? -1 : one->step > two->step;
}

static int take_page(struct status *const status, const struct replica_list_message *const page)
{
	for (size_t i = 0; i < page->count && status->count < REPLICAS_MOST; i++)
		if (!page->replicas[i].expired)
			status->replicas[status->count++] = page->replicas[i];
	return page->next.len > 0 && status->count < REPLICAS_MOST;
}

static int collect(struct status *const status, struct error *const err)
{
	struct exchange *const exchange = status->exchange;
	const struct hot_load_call *const call = status->call;
	struct replica_list_message page = {0};
	status->replicas = arena_take_array(exchange->arena, REPLICAS_MOST, sizeof(status->replicas[0]));
	if (status->replicas == NULL)
		return error_set(err, ERROR_NO_MEMORY, "The request's memory ran out.");
	do {
		if (replica_list(exchange->context->store, call->bucket, call->run, page.next, REPLICA_LIST_MAX, exchange->arena, &page, err) != 0)
			return -1;
	} while (take_page(status, &page));
	qsort(status->replicas, status->count, sizeof(status->replicas[0]), by_step);
	return hot_load_find_newest(exchange->context->store, call->bucket, call->run, exchange->arena, &status->newest, err);
}

static int name_step(struct status *const status, const uint64_t step, struct error *const err)
{
	if (status->has_named && status->named_step == step)
		return 0;
	status->has_named = true;
	status->named_step = step;
	return hot_load_identity(status->exchange->context->store, status->call->bucket, status->call->run, step, status->exchange->arena,
		&status->named, err);
}

static const char *stage_of(const struct status *const status, const struct replica_message *const replica)
{
	return status->newest.failed ? replica_state_name(REPLICA_ERROR) : replica_state_name(replica->state);
}

static int print_replica(struct status *const status, const struct replica_message *const replica, struct json_writer *const writer,
	struct error *const err)
{
	if (replica->has_step && name_step(status, replica->step, err) != 0)
		return -1;
	const struct span current = replica->has_step ? status->named : (struct span){0};
	json_writer_object(writer, NULL);
	json_writer_text(writer, "replica", replica->id);
	json_writer_text(writer, "current_snapshot_identity", current);
	json_writer_bool(writer, "readiness", replica->state == REPLICA_READY && !status->newest.failed);
	json_writer_object(writer, "loading_state");
	json_writer_text(writer, "stage", span_text(stage_of(status, replica)));
	json_writer_text(writer, "target_snapshot_identity", status->newest.is_known ? status->newest.identity : current);
	if (status->newest.failed || replica->error.len > 0)
		json_writer_text(writer, "error", status->newest.failed ? status->newest.error : replica->error);
	json_writer_end(writer, '}');
	json_writer_end(writer, '}');
	return 0;
}

/* The snapshot itself, so that a failure shows where no replica has come yet. */
static void print_snapshot(const struct hot_load_newest *const newest, struct json_writer *const writer)
{
	if (!newest->is_known)
		return;
	json_writer_object(writer, "snapshot");
	json_writer_text(writer, "identity", newest->identity);
	json_writer_text(writer, "state", span_text(newest->failed ? "failed" : newest->is_step ? "published" : "waiting"));
	if (newest->failed)
		json_writer_text(writer, "error", newest->error);
	json_writer_end(writer, '}');
}

static int print(struct status *const status, struct buffer *const body, struct error *const err)
{
	struct json_writer writer;
	int result = 0;
	json_writer_init(&writer, body);
	json_writer_object(&writer, NULL);
	json_writer_array(&writer, "replicas");
	for (size_t i = 0; i < status->count && result == 0; i++)
		result = print_replica(status, &status->replicas[i], &writer, err);
	json_writer_end(&writer, ']');
	print_snapshot(&status->newest, &writer);
	json_writer_end(&writer, '}');
	return result == 0 ? buffer_check(body, "the list of replicas", err) : -1;
}

enum next get_hot_load_begin(struct exchange *const exchange)
{
	struct status status = {.exchange = exchange};
	struct buffer body;
	struct error err = {0};
	status.call = hot_load_call_open(exchange, PERMISSION_READ, &err);
	if (status.call == NULL || collect(&status, &err) != 0)
		return exchange_fail(exchange, &err);
	buffer_init(&body, BODY_MAX_BYTES);
	if (print(&status, &body, &err) != 0) {
		buffer_release(&body);
		return exchange_fail(exchange, &err);
	}
	exchange_add_header(exchange, "Cache-Control", "no-store");
	return steps_request_reply_json(exchange, 200, &body);
}
