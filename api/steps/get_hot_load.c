/* A helper collects the replicas page by page, sorts them by step and looks up the snapshot of each
 * step once, because thousands of replicas would occupy a reactor too long. The resume prints. Each
 * page has an arena of its own, so that only the printed fields stay in the arena of the
 * request. */
#include "api/steps/handlers.h"

#include <stddef.h>
#include <stdlib.h>

#include "api/steps/hot_load_run.h"
#include "api/steps/steps_request.h"
#include "base/format/json_node.h"
#include "base/thread/helpers.h"
#include "storage/buckets/account.h"
#include "storage/runs/hot_load.h"
#include "storage/runs/replica.h"

enum {
	REPLICAS_MOST = 10000,
	BODY_MAX_BYTES = 8 * 1024 * 1024,
	PAGE_ARENA_BYTES = 64 * 1024 * 1024,
	ERROR_SHOWN_BYTES = 512
};

struct status { /* the exchange's state */
	struct helper_job job;
	struct helper_lane lane;
	struct exchange *exchange;
	const struct run_ref *run;
	struct replica_message *replicas;
	struct span *identities; /* the snapshot of each replica's step */
	size_t count;
	struct hot_load_newest newest;
	struct rollback_message rollback;
	struct span held; /* the snapshot of the rollback's step */
	int result;
	struct error err;
};

static void get_hot_load_collect(struct helper_job *job);
static int collect(struct status *status, struct error *err);
static bool take_page(
	struct status *status, const struct replica_list_message *page, struct span *out_next);
static int get_hot_load_compare(const void *a, const void *b);
static int name_steps(struct status *status, struct error *err);
static int print(const struct status *status, struct buffer *body, struct error *err);
static void print_replica(const struct status *status, size_t at, struct json_writer *writer);
static const char *stage_of(const struct status *status, const struct replica_message *replica);
static void print_snapshot(const struct hot_load_newest *newest, struct json_writer *writer);

enum next get_hot_load_begin(struct exchange *exchange)
{
	struct status *const status = arena_take(exchange->arena, sizeof(*status));
	struct error err = {0};
	ASSERT(status != NULL);
	*status = (struct status){.job = {.run = get_hot_load_collect}, .exchange = exchange};
	const struct hot_load_run *const found = hot_load_run_find(exchange, PERMISSION_READ, &err);
	if (found == NULL)
		return exchange_fail(exchange, &err);
	status->run = &found->run;
	exchange->state = status;
	helpers_submit(store_helpers(exchange->context->store), &status->lane, &status->job);
	return NEXT_WAIT;
}

enum next get_hot_load_resume(struct exchange *exchange)
{
	struct status *const status = exchange->state;
	ASSERT(status != NULL);
	struct buffer body;
	if (status->result != 0)
		return exchange_fail(exchange, &status->err);
	buffer_init(&body, BODY_MAX_BYTES);
	if (print(status, &body, &status->err) != 0) {
		buffer_release(&body);
		return exchange_fail(exchange, &status->err);
	}
	exchange_add_header(exchange, "Cache-Control", "no-store");
	return steps_request_reply_json(exchange, 200, &body);
}

static void get_hot_load_collect(struct helper_job *job)
{
	struct status *const status = (struct status *)((char *)job - offsetof(struct status, job));
	struct exchange *const exchange = status->exchange;
	status->replicas =
		arena_take_array(exchange->arena, REPLICAS_MOST, sizeof(status->replicas[0]));
	status->identities =
		arena_take_array(exchange->arena, REPLICAS_MOST, sizeof(status->identities[0]));
	if (status->replicas == NULL || status->identities == NULL)
		status->result = error_set(
			&status->err, ERROR_NO_MEMORY, "The memory of a request ran out.");
	else if (collect(status, &status->err) != 0 || name_steps(status, &status->err) != 0)
		status->result = -1;
	else if (arena_overflowed(exchange->arena))
		status->result = error_set(&status->err, ERROR_NO_MEMORY,
			"The memory of a request ran out while it listed replicas.");
	exchange_wake(exchange); /* The exchange may be gone from here on. */
}

static int collect(struct status *status, struct error *err)
{
	struct store *const store = status->exchange->context->store;
	struct replica_scan scan = {.run = *status->run, .limit = REPLICA_LIST_MAX};
	int result = 0;
	bool more = true;
	while (result == 0 && more) {
		struct arena *const arena = arena_new(PAGE_ARENA_BYTES);
		struct replica_list_message page = {0};
		result = replica_list(store, &scan, arena, &page, err);
		more = result == 0 && take_page(status, &page, &scan.after);
		status->rollback = page.rollback;
		arena_free(arena);
	}
	qsort(status->replicas, status->count, sizeof(status->replicas[0]), get_hot_load_compare);
	return result != 0 ? -1
			   : hot_load_find_newest(store, status->run, status->exchange->arena,
				     &status->newest, err);
}

/* Copies the printed fields of a page's replicas. True when there are more pages. */
static bool take_page(
	struct status *status, const struct replica_list_message *page, struct span *out_next)
{
	struct arena *const arena = status->exchange->arena;
	for (size_t i = 0; i < page->count && status->count < REPLICAS_MOST; i++) {
		const struct replica_message *const from = &page->replicas[i];
		if (from->expired)
			continue;
		status->replicas[status->count++] = (struct replica_message){
			.id = arena_copy(arena, from->id),
			.state = from->state,
			.has_step = from->has_step,
			.step = from->step,
			.error = arena_copy(arena, span_slice(from->error, 0, ERROR_SHOWN_BYTES))};
	}
	*out_next = arena_copy(arena, page->next);
	return page->next.len > 0 && status->count < REPLICAS_MOST;
}

static int get_hot_load_compare(const void *a, const void *b)
{
	const struct replica_message *const one = a;
	const struct replica_message *const two = b;
	if (one->has_step != two->has_step)
		return one->has_step ? 1 : -1;
	return one->step < two->step ? -1 : one->step > two->step;
}

/* Finds the snapshot of each step, and of the rollback's. The replicas are sorted, so each step is
 * looked up once. */
static int name_steps(struct status *status, struct error *err)
{
	struct exchange *const exchange = status->exchange;
	ASSERT(status->count <= REPLICAS_MOST);
	for (size_t i = 0; i < status->count; i++) {
		const struct replica_message *const replica = &status->replicas[i];
		const bool is_same = i > 0 && status->replicas[i - 1].has_step &&
			status->replicas[i - 1].step == replica->step;
		status->identities[i] = is_same ? status->identities[i - 1] : (struct span){0};
		if (replica->has_step && !is_same &&
			hot_load_identity(exchange->context->store, status->run, replica->step,
				exchange->arena, &status->identities[i], err) != 0)
			return -1;
	}
	return !status->rollback.is_on
		? 0
		: hot_load_identity(exchange->context->store, status->run, status->rollback.step,
			  exchange->arena, &status->held, err);
}

static int print(const struct status *status, struct buffer *body, struct error *err)
{
	struct json_writer writer;
	json_writer_init(&writer, body);
	json_writer_object(&writer, NULL);
	json_writer_array(&writer, "replicas");
	for (size_t i = 0; i < status->count; i++)
		print_replica(status, i, &writer);
	json_writer_end(&writer, ']');
	print_snapshot(&status->newest, &writer);
	json_writer_end(&writer, '}');
	return buffer_check(body, "the list of replicas", err);
}

static void print_replica(const struct status *status, size_t at, struct json_writer *writer)
{
	const struct replica_message *const replica = &status->replicas[at];
	const struct span current = status->identities[at];
	json_writer_object(writer, NULL);
	json_writer_text(writer, "replica", replica->id);
	json_writer_text(writer, "current_snapshot_identity", current);
	json_writer_bool(
		writer, "readiness", replica->state == REPLICA_READY && !status->newest.failed);
	json_writer_object(writer, "loading_state");
	json_writer_text(writer, "stage", span_text(stage_of(status, replica)));
	json_writer_text(writer, "target_snapshot_identity",
		status->rollback.is_on            ? status->held
			: status->newest.is_known ? status->newest.identity
						  : current);
	if (status->newest.failed || replica->error.len > 0)
		json_writer_text(writer, "error",
			status->newest.failed ? status->newest.error : replica->error);
	json_writer_end(writer, '}');
	json_writer_end(writer, '}');
}

static const char *stage_of(const struct status *status, const struct replica_message *replica)
{
	return status->newest.failed ? replica_state_name(REPLICA_ERROR)
				     : replica_state_name(replica->state);
}

/* Prints the newest snapshot, so that its failure shows even when there is no replica yet. */
static void print_snapshot(const struct hot_load_newest *newest, struct json_writer *writer)
{
	if (!newest->is_known)
		return;
	json_writer_object(writer, "snapshot");
	json_writer_text(writer, "identity", newest->identity);
	json_writer_text(writer, "state",
		span_text(newest->failed          ? "failed"
				: newest->is_step ? "published"
						  : "waiting"));
	if (newest->failed)
		json_writer_text(writer, "error", newest->error);
	json_writer_end(writer, '}');
}
