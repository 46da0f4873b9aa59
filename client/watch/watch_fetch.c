#include "client/watch/watch_fetch.h"

#include "base/memory.h"
#include "client/remote/remote_run.h"

static bool needs_step(const struct watch_run *before, const struct run_message *now);
static void take_step(const struct step_message *step, struct watch_run *out);
static void add_workers(const struct replica_list_message *page, struct watch_fleet *out);

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
	watch_text_keep(step->label, out->label, sizeof(out->label));
	watch_text_keep(step->verify_error, out->verify_error, sizeof(out->verify_error));
}

int watch_fetch_fleet(struct remote *remote, const struct run_name *run, bool lists,
	struct watch_fleet *out, struct error *err)
{
	char after[REPLICA_ID_MAX_BYTES + 1] = "";
	bool more = true;
	int result = 0;
	*out = (struct watch_fleet){.is_listed = lists};
	while (result == 0 && more) {
		struct arena *const arena = arena_new(REMOTE_RUN_ARENA_BYTES);
		struct remote_run_replicas page = {
			.limit = lists ? REPLICA_LIST_MAX : 1, .after = span_text(after)};
		result = remote_run_list_replicas(remote, run, arena, &page, err);
		out->counts = page.list.counts;
		if (lists)
			add_workers(&page.list, out);
		more = lists && page.list.count > 0 && page.list.next.len > 0 &&
			out->count < WATCH_WORKERS_MAX;
		watch_text_keep(page.list.next, after, sizeof(after));
		remote_run_replicas_release(&page);
		arena_free(arena);
	}
	if (result != 0 && (err->kind == ERROR_DENIED || err->kind == ERROR_NO_CREDENTIALS)) {
		watch_fleet_release(out);
		out->is_denied = true;
		return 0;
	}
	return result;
}

static void add_workers(const struct replica_list_message *page, struct watch_fleet *out)
{
	const size_t room = WATCH_WORKERS_MAX - out->count;
	const size_t count = page->count < room ? page->count : room;
	out->workers = memory_grow(out->workers, out->count + count + 1, sizeof(*out->workers));
	for (size_t i = 0; i < count; i++)
		watch_worker_take(&out->workers[out->count++], &page->replicas[i]);
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
