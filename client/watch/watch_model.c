#include "client/watch/watch_model.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

static const char *const KIND_NAMES[WATCH_KIND_COUNT] = {"published", "proven", "proof_failed",
	"rolled_back", "forwarded", "writer", "worker_failed", "worker_expired", "worker_back",
	"fleet"};

static void tell(
	struct watch_model *model, enum watch_kind kind, const struct watch_worker *worker);
static void tell_step(struct watch_model *model, enum watch_kind kind, uint64_t step, int64_t ms);
static void tell_changes(struct watch_model *model, const struct watch_run *before);
static void tell_proof(struct watch_model *model, const struct watch_run *before);
static void tell_rollback(struct watch_model *model, const struct watch_run *before);
static void tell_workers(struct watch_model *model, const struct watch_fleet *before);
static bool is_well(const struct watch_worker *worker);
static void tell_worker(struct watch_model *model, const struct watch_worker *before,
	const struct watch_worker *now);
static bool has_same_counts(const struct watch_fleet *a, const struct watch_fleet *b);
static struct watch_lag find_lag(const struct watch_model *model);
static void keep_lag(struct watch_model *model);

void watch_worker_take(struct watch_worker *worker, const struct replica_message *replica)
{
	*worker = (struct watch_worker){.state = replica->state,
		.expired = replica->expired,
		.has_step = replica->has_step,
		.step = replica->step,
		.has_lag = replica->has_staleness,
		.behind_steps = replica->behind_steps,
		.behind_s = replica->behind_s,
		.has_pause = replica->has_pause,
		.pause_ms = replica->pause_ms,
		.updated_ms = replica->updated_ms};
	watch_text_keep(replica->id, worker->id, sizeof(worker->id));
	watch_text_keep(replica->error, worker->error, sizeof(worker->error));
}

void watch_text_keep(struct span text, char *out, size_t capacity)
{
	const size_t len = text.len < capacity - 1 ? text.len : capacity - 1;
	if (len > 0)
		memcpy(out, text.data, len);
	out[len] = '\0';
}

void watch_fleet_release(struct watch_fleet *fleet)
{
	free(fleet->workers);
	*fleet = (struct watch_fleet){0};
}

void watch_model_release(struct watch_model *model)
{
	watch_fleet_release(&model->fleet);
}

const char *watch_kind_name(enum watch_kind kind)
{
	ASSERT((unsigned)kind < WATCH_KIND_COUNT);
	return KIND_NAMES[kind];
}

void watch_model_note_step(struct watch_model *model, uint64_t step, int64_t created_ms)
{
	const size_t count = model->published_count;
	if (count > 0 && model->published[count - 1].step >= step)
		return;
	if (count == WATCH_STEPS_MAX)
		memmove(&model->published[0], &model->published[1],
			(WATCH_STEPS_MAX - 1) * sizeof(model->published[0]));
	else
		model->published_count++;
	model->published[model->published_count - 1].step = step;
	model->published[model->published_count - 1].created_ms = created_ms;
}

void watch_model_take_run(struct watch_model *model, const struct watch_run *run)
{
	const struct watch_run before = model->run;
	const bool is_first = !model->has_run;
	model->run = *run;
	model->has_run = true;
	if (run->has_step)
		watch_model_note_step(model, run->head, run->created_ms);
	if (!is_first)
		tell_changes(model, &before);
}

void watch_model_take_fleet(struct watch_model *model, struct watch_fleet *fleet)
{
	struct watch_fleet before = model->fleet;
	const bool is_first = !model->has_fleet;
	model->fleet = *fleet;
	*fleet = (struct watch_fleet){0};
	if (!model->fleet.is_listed && !model->fleet.is_denied) {
		model->fleet.workers = before.workers;
		model->fleet.count = before.count;
		model->fleet.is_listed = before.is_listed;
		before.workers = NULL;
	}
	model->has_fleet = true;
	model->lag = find_lag(model);
	keep_lag(model);
	if (!is_first && before.is_listed && before.workers != NULL && model->fleet.is_listed)
		tell_workers(model, &before);
	if (!is_first && !has_same_counts(&before, &model->fleet))
		tell(model, WATCH_FLEET, NULL);
	free(before.workers);
}

int64_t watch_model_pace_ms(const struct watch_model *model)
{
	const size_t count = model->published_count;
	if (count < 2)
		return 0;
	const uint64_t steps = model->published[count - 1].step - model->published[0].step;
	const int64_t ms = model->published[count - 1].created_ms - model->published[0].created_ms;
	return ms > 0 ? ms / (int64_t)steps : 0;
}

bool watch_model_target(const struct watch_model *model, uint64_t *out)
{
	const struct watch_run *const run = &model->run;
	*out = run->rollback.is_on ? run->rollback.step : run->head;
	return run->rollback.is_on || run->has_head;
}

static void tell(struct watch_model *model, enum watch_kind kind, const struct watch_worker *worker)
{
	const struct watch_event event = {.kind = kind,
		.ms = clock_wall_ms(),
		.has_step = worker != NULL && worker->has_step,
		.step = worker != NULL ? worker->step : 0,
		.worker = worker};
	if (model->tell != NULL)
		model->tell(model->owner, &event);
}

static void tell_step(struct watch_model *model, enum watch_kind kind, uint64_t step, int64_t ms)
{
	const struct watch_event event = {.kind = kind, .ms = ms, .has_step = true, .step = step};
	if (model->tell != NULL)
		model->tell(model->owner, &event);
}

static void tell_changes(struct watch_model *model, const struct watch_run *before)
{
	const struct watch_run *const run = &model->run;
	if (run->has_head && (!before->has_head || run->head != before->head))
		tell_step(model, WATCH_PUBLISHED, run->head,
			run->has_step ? run->created_ms : clock_wall_ms());
	tell_proof(model, before);
	tell_rollback(model, before);
	if (run->epoch != before->epoch)
		tell(model, WATCH_WRITER, NULL);
}

static void tell_proof(struct watch_model *model, const struct watch_run *before)
{
	const struct watch_run *const run = &model->run;
	const bool is_same =
		before->has_head && before->head == run->head && before->verified == run->verified;
	if (!run->has_step || is_same)
		return;
	if (run->verified == STEP_PROOF_OK)
		tell_step(model, WATCH_PROVEN, run->head, clock_wall_ms());
	else if (run->verified == STEP_PROOF_FAILED)
		tell_step(model, WATCH_PROOF_FAILED, run->head, clock_wall_ms());
}

static void tell_rollback(struct watch_model *model, const struct watch_run *before)
{
	const struct rollback_message *const now = &model->run.rollback;
	if (now->is_on && (!before->rollback.is_on || before->rollback.step != now->step))
		tell_step(model, WATCH_ROLLED_BACK, now->step, now->created_ms);
	else if (!now->is_on && before->rollback.is_on)
		tell(model, WATCH_FORWARDED, NULL);
}

/* Both lists are in byte order of the ids. */
static void tell_workers(struct watch_model *model, const struct watch_fleet *before)
{
	const struct watch_fleet *const now = &model->fleet;
	size_t old = 0;
	for (size_t i = 0; i < now->count; i++) {
		while (old < before->count &&
			strcmp(before->workers[old].id, now->workers[i].id) < 0)
			old++;
		const bool was_there = old < before->count &&
			strcmp(before->workers[old].id, now->workers[i].id) == 0;
		tell_worker(model, was_there ? &before->workers[old] : NULL, &now->workers[i]);
	}
}

/* `before` may be NULL. */
static void tell_worker(struct watch_model *model, const struct watch_worker *before,
	const struct watch_worker *now)
{
	const bool failed = !now->expired && now->state == REPLICA_ERROR;
	const bool had_failed =
		before != NULL && !before->expired && before->state == REPLICA_ERROR;
	if (now->expired && before != NULL && !before->expired)
		tell(model, WATCH_WORKER_EXPIRED, now);
	else if (failed && !had_failed)
		tell(model, WATCH_WORKER_FAILED, now);
	else if (is_well(now) && before != NULL && !is_well(before))
		tell(model, WATCH_WORKER_BACK, now);
}

static bool is_well(const struct watch_worker *worker)
{
	return !worker->expired && worker->state != REPLICA_ERROR;
}

static bool has_same_counts(const struct watch_fleet *a, const struct watch_fleet *b)
{
	return memcmp(a->counts.states, b->counts.states, sizeof(a->counts.states)) == 0 &&
		a->counts.expired == b->counts.expired &&
		a->counts.without_step == b->counts.without_step &&
		a->counts.has_oldest == b->counts.has_oldest &&
		a->counts.oldest == b->counts.oldest;
}

/* The counts are of now; the list, which has seconds too, may be a little older. */
static struct watch_lag find_lag(const struct watch_model *model)
{
	const struct watch_fleet *const fleet = &model->fleet;
	struct watch_lag lag = {.is_known = false};
	uint64_t target;
	for (size_t i = 0; i < fleet->count; i++) {
		const struct watch_worker *const worker = &fleet->workers[i];
		if (worker->expired || !worker->has_lag)
			continue;
		lag.is_known = lag.has_seconds = true;
		lag.steps = worker->behind_steps > lag.steps ? worker->behind_steps : lag.steps;
		lag.seconds = worker->behind_s > lag.seconds ? worker->behind_s : lag.seconds;
	}
	if (fleet->counts.has_oldest && watch_model_target(model, &target) &&
		(!model->run.rollback.is_on || fleet->counts.oldest < target)) {
		lag.is_known = true;
		lag.steps = target > fleet->counts.oldest ? target - fleet->counts.oldest : 0;
	}
	return lag;
}

static void keep_lag(struct watch_model *model)
{
	if (model->lag_count == WATCH_LAGS_MAX)
		memmove(&model->lags[0], &model->lags[1],
			(WATCH_LAGS_MAX - 1) * sizeof(model->lags[0]));
	else
		model->lag_count++;
	model->lags[model->lag_count - 1] = model->lag.is_known ? model->lag.steps : 0;
}
