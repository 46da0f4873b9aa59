#include "client/watch/watch_fetch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "client/remote/remote_json.h"
#include "client/remote/remote_run.h"

enum { TARGET_MAX_BYTES = 1024 };

static bool needs_step(const struct watch_run *before, const struct run_message *now);
static void take_step(const struct step_message *step, struct watch_run *out);
static int fetch_page(struct remote *remote, const char *target, struct buffer *text,
	struct arena *arena, struct replica_list_message *out, struct error *err);
static void take_counts(const struct replica_list_message *page, struct watch_fleet *out);
static void add_workers(const struct replica_list_message *page, struct watch_fleet *out);
static void take_worker(const struct replica_message *replica, struct watch_worker *out);
static void keep_text(struct span text, char *out, size_t capacity);

int watch_fetch_run(struct remote *remote, const struct run_name *run,
	const struct watch_run *before, struct watch_run *out, struct error *err)
{
	struct run_message now;
	struct step_message step;
	struct error passing = {0}; /* the step may have been removed meanwhile */
	struct arena *const arena = arena_new(2 * (size_t)REMOTE_RUN_ARENA_BYTES);
	const int result = remote_run_find(remote, run, arena, &now, err);
	if (result == 0) {
		*out = *before;
		out->has_step = before->has_step && before->has_head && now.head == before->head;
		if (needs_step(before, &now) &&
			remote_run_step(remote, run, now.head, arena, &step, &passing) == 0)
			take_step(&step, out);
		out->epoch = now.epoch;
		out->steps = now.steps;
		out->bytes = now.bytes;
		out->anchor_due = now.anchor_due;
		out->rollback = now.rollback;
		out->has_head = now.has_head;
		out->head = now.head;
	}
	arena_free(arena);
	return result;
}

static bool needs_step(const struct watch_run *before, const struct run_message *now)
{
	return now->has_head &&
		(!before->has_step || before->head != now->head ||
			before->verified == STEP_PROOF_PENDING);
}

static void take_step(const struct step_message *step, struct watch_run *out)
{
	const struct step_form *const delta = step_message_form(step, STEP_DELTA);
	out->has_step = true;
	out->created_ms = step->created_ms;
	out->verified = step->verified;
	out->has_delta = delta != NULL;
	out->delta_bytes = delta != NULL ? step_form_bytes(delta) : 0;
	out->full_bytes = 0;
	for (size_t i = 0; i < step->file_count; i++)
		out->full_bytes += step->files[i].size;
	keep_text(step->label, out->label, sizeof(out->label));
	keep_text(step->verify_error, out->verify_error, sizeof(out->verify_error));
}

int watch_fetch_fleet(struct remote *remote, const struct run_name *run, bool lists,
	struct watch_fleet *out, struct error *err)
{
	char after[REPLICA_ID_MAX_BYTES + 1] = "";
	bool more = true;
	int result = 0;
	*out = (struct watch_fleet){.is_listed = lists};
	while (result == 0 && more) {
		char below[TARGET_MAX_BYTES];
		struct replica_list_message page = {0};
		struct buffer text;
		struct arena *const arena = arena_new(REMOTE_RUN_ARENA_BYTES);
		buffer_init(&text, REMOTE_RUN_ARENA_BYTES / 2);
		snprintf(below, sizeof(below), "replicas?limit=%d%s%s",
			lists ? REPLICA_LIST_MAX : 1, after[0] != '\0' ? "&after=" : "", after);
		char *const target = remote_json_target(run, below, NULL);
		result = fetch_page(remote, target, &text, arena, &page, err);
		take_counts(&page, out);
		if (lists)
			add_workers(&page, out);
		more = lists && page.count > 0 && page.next.len > 0 &&
			out->count < WATCH_WORKERS_MAX;
		keep_text(page.next, after, sizeof(after));
		free(target);
		buffer_release(&text);
		arena_free(arena);
	}
	if (result != 0 && (err->kind == ERROR_DENIED || err->kind == ERROR_NO_CREDENTIALS)) {
		watch_fleet_release(out);
		out->is_denied = true;
		return 0;
	}
	return result;
}

static int fetch_page(struct remote *remote, const char *target, struct buffer *text,
	struct arena *arena, struct replica_list_message *out, struct error *err)
{
	const struct http_request request = {.method = "GET", .target = target};
	struct http_response response;
	int result = remote_send(remote, &request, &response, err);
	if (result == 0) {
		buffer_add_span(text, buffer_span(&response.body));
		result = buffer_check(text, "the list of replicas", err);
	}
	if (result == 0 && replica_list_message_parse(buffer_span(text), arena, out, err) != 0) {
		err->kind = ERROR_UPSTREAM;
		result = -1;
	}
	http_response_release(&response);
	return result;
}

static void take_counts(const struct replica_list_message *page, struct watch_fleet *out)
{
	memcpy(out->states, page->states, sizeof(out->states));
	out->expired = page->expired;
	out->without_step = page->without_step;
	out->has_oldest = page->has_oldest;
	out->oldest = page->oldest;
	out->has_report = page->has_report;
	out->oldest_report_s = page->oldest_report_s;
}

static void add_workers(const struct replica_list_message *page, struct watch_fleet *out)
{
	const size_t room = WATCH_WORKERS_MAX - out->count;
	const size_t count = page->count < room ? page->count : room;
	out->workers = memory_grow(out->workers, out->count + count + 1, sizeof(*out->workers));
	for (size_t i = 0; i < count; i++)
		take_worker(&page->replicas[i], &out->workers[out->count++]);
}

static void take_worker(const struct replica_message *replica, struct watch_worker *out)
{
	*out = (struct watch_worker){.state = replica->state,
		.expired = replica->expired,
		.has_step = replica->has_step,
		.step = replica->step,
		.has_lag = replica->has_staleness,
		.behind_steps = replica->behind_steps,
		.behind_s = replica->behind_s,
		.has_pause = replica->has_pause,
		.pause_ms = replica->pause_ms,
		.updated_ms = replica->updated_ms};
	keep_text(replica->id, out->id, sizeof(out->id));
	keep_text(replica->error, out->error, sizeof(out->error));
}

static void keep_text(struct span text, char *out, size_t capacity)
{
	const size_t len = text.len < capacity - 1 ? text.len : capacity - 1;
	if (len > 0)
		memcpy(out, text.data, len);
	out[len] = '\0';
}

void watch_fetch_history(
	struct remote *remote, const struct run_name *run, uint64_t head, struct watch_model *model)
{
	struct remote_run_page page = {0};
	struct error ignored = {0};
	struct arena *const arena = arena_new(2 * (size_t)REMOTE_RUN_ARENA_BYTES);
	const uint64_t from = head >= WATCH_STEPS_MAX ? head - WATCH_STEPS_MAX + 1 : 0;
	if (remote_run_list_steps(remote, run, from, arena, &page, &ignored) != 0)
		page.count = 0;
	model->published_count = page.count > 0 ? 0 : model->published_count;
	for (size_t i = 0; i < page.count; i++)
		watch_model_note_step(model, page.steps[i].step, page.steps[i].created_ms);
	arena_free(arena);
}

int watch_fetch_pause(struct remote *remote, const struct run_name *run,
	const struct watch_run *known, uint64_t seconds, struct error *err)
{
	struct step_message ignored;
	struct arena *const arena = arena_new(REMOTE_RUN_ARENA_BYTES);
	const struct remote_run_wait wait = {.has_after = known->has_head,
		.after = known->head,
		.wait_s = seconds,
		.of_head = true};
	const int result = remote_run_latest(remote, run, &wait, arena, &ignored, err);
	arena_free(arena);
	return result < 0 ? -1 : 0;
}
