#include "client/watch/watch_events.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"

static void format_fleet(const struct watch_model *model, char out[WATCH_SENTENCE_BYTES]);
static void begin(
	struct output_line *line, struct output *output, const char *event, const char *run);
static void print_time(struct json_writer *writer, const char *name, int64_t ms);
static void print_run(struct output *output, const char *run, const struct watch_model *model);
static void print_fleet(struct output *output, const char *run, const struct watch_model *model);
static void print_counts(struct json_writer *writer, const struct watch_model *model);
static void print_worker(struct json_writer *writer, const struct watch_worker *worker);
static void print_event(struct output *output, const char *run, const struct watch_event *event);

void watch_events_format(const struct watch_model *model, const struct watch_event *event,
	char out[WATCH_SENTENCE_BYTES])
{
	static const char *const SENTENCES[WATCH_KIND_COUNT] = {
		[WATCH_PUBLISHED] = "is published",
		[WATCH_PROVEN] = "is proven",
		[WATCH_PROOF_FAILED] = "failed its proof: ",
		[WATCH_WORKER_FAILED] = "failed: ",
		[WATCH_WORKER_EXPIRED] = "has expired",
		[WATCH_WORKER_BACK] = "is back",
	};
	if (event->kind == WATCH_FORWARDED)
		snprintf(out, WATCH_SENTENCE_BYTES, "the fleet takes the newest step again");
	else if (event->kind == WATCH_WRITER)
		snprintf(out, WATCH_SENTENCE_BYTES,
			"another writer has opened the run: epoch %" PRIu64, model->run.epoch);
	else if (event->kind == WATCH_ROLLED_BACK)
		snprintf(out, WATCH_SENTENCE_BYTES, "the fleet is held at step %" PRIu64,
			event->step);
	else if (event->kind == WATCH_FLEET)
		format_fleet(model, out);
	else if (event->worker != NULL)
		snprintf(out, WATCH_SENTENCE_BYTES, "worker %s %s%s", event->worker->id,
			SENTENCES[event->kind],
			event->kind == WATCH_WORKER_FAILED ? event->worker->error : "");
	else
		snprintf(out, WATCH_SENTENCE_BYTES, "step %" PRIu64 " %s%s", event->step,
			SENTENCES[event->kind],
			event->kind == WATCH_PROOF_FAILED ? model->run.verify_error : "");
	watch_picture_clean(out);
}

static void format_fleet(const struct watch_model *model, char out[WATCH_SENTENCE_BYTES])
{
	const struct watch_fleet *const fleet = &model->fleet;
	size_t used = (size_t)snprintf(out, WATCH_SENTENCE_BYTES, "workers:");
	for (enum replica_state i = REPLICA_STATE_COUNT; i-- > 0;)
		used += (size_t)snprintf(out + used, WATCH_SENTENCE_BYTES - used,
			" %s %" PRIu64 ",", replica_state_name(i), fleet->counts.states[i]);
	used += (size_t)snprintf(out + used, WATCH_SENTENCE_BYTES - used,
		" expired %" PRIu64 ", without a step %" PRIu64, fleet->counts.expired,
		fleet->counts.without_step);
	if (model->lag.is_known)
		snprintf(out + used, WATCH_SENTENCE_BYTES - used,
			"; the slowest %" PRIu64 " behind", model->lag.steps);
}

void watch_events_say(struct output *output, const char *run, const struct watch_model *model,
	const struct watch_event *event)
{
	char sentence[WATCH_SENTENCE_BYTES];
	char time[CLOCK_TEXT_BYTES];
	if (event->kind == WATCH_FLEET)
		print_fleet(output, run, model);
	else
		print_event(output, run, event);
	clock_format_iso(event->ms, time);
	watch_events_format(model, event, sentence);
	output_result(output, "%s  %s", time, sentence);
}

void watch_events_print_all(struct output *output, const struct watch_view *view,
	const struct watch_model *model, size_t limit)
{
	const struct watch_fleet *const fleet = &model->fleet;
	print_run(output, view->run, model);
	if (fleet->is_denied)
		return;
	print_fleet(output, view->run, model);
	const struct watch_worker **const chosen =
		memory_new_array(fleet->count + 1, sizeof(*chosen));
	const size_t count = watch_picture_choose(view, fleet, chosen);
	for (size_t i = 0; i < count && i < limit; i++) {
		struct output_line line;
		begin(&line, output, "worker", view->run);
		print_worker(&line.writer, chosen[i]);
		output_line_end(&line);
	}
	free(chosen);
}

static void begin(
	struct output_line *line, struct output *output, const char *event, const char *run)
{
	output_line_begin(line, output, event);
	json_writer_text(&line->writer, "run", span_text(run));
}

static void print_time(struct json_writer *writer, const char *name, int64_t ms)
{
	char time[CLOCK_TEXT_BYTES];
	clock_format_iso(ms, time);
	json_writer_text(writer, name, span_text(time));
}

static void print_run(struct output *output, const char *run, const struct watch_model *model)
{
	const struct watch_run *const now = &model->run;
	struct output_line line;
	begin(&line, output, "run", run);
	json_writer_u64(&line.writer, "epoch", now->epoch);
	if (now->has_head)
		json_writer_u64(&line.writer, "head", now->head);
	if (now->has_step)
		print_time(&line.writer, "created", now->created_ms);
	if (now->has_step && now->verified != STEP_PROOF_NONE)
		json_writer_text(
			&line.writer, "verified", span_text(step_proof_name(now->verified)));
	if (now->has_step)
		json_writer_u64(&line.writer, "full_bytes", now->full_bytes);
	if (now->has_delta)
		json_writer_u64(&line.writer, "delta_bytes", now->delta_bytes);
	json_writer_u64(&line.writer, "steps", now->steps);
	json_writer_u64(&line.writer, "bytes", now->bytes);
	json_writer_bool(&line.writer, "anchor_due", now->anchor_due);
	if (watch_model_pace_ms(model) > 0)
		json_writer_i64(&line.writer, "pace_ms", watch_model_pace_ms(model));
	rollback_message_print(&now->rollback, &line.writer);
	output_line_end(&line);
}

static void print_fleet(struct output *output, const char *run, const struct watch_model *model)
{
	struct output_line line;
	begin(&line, output, "fleet", run);
	print_counts(&line.writer, model);
	output_line_end(&line);
}

static void print_counts(struct json_writer *writer, const struct watch_model *model)
{
	fleet_counts_print(&model->fleet.counts, writer);
	if (model->lag.is_known)
		json_writer_u64(writer, "lag_steps", model->lag.steps);
	if (model->lag.has_seconds)
		json_writer_u64(writer, "lag_seconds", model->lag.seconds);
}

static void print_worker(struct json_writer *writer, const struct watch_worker *worker)
{
	json_writer_text(writer, "worker", span_text(worker->id));
	json_writer_text(writer, "state", span_text(replica_state_name(worker->state)));
	json_writer_bool(writer, "expired", worker->expired);
	if (worker->has_step)
		json_writer_u64(writer, "step", worker->step);
	if (worker->has_lag) {
		json_writer_u64(writer, "behind_steps", worker->behind_steps);
		json_writer_u64(writer, "behind_seconds", worker->behind_s);
	}
	if (worker->has_pause)
		json_writer_u64(writer, "pause_ms", worker->pause_ms);
	print_time(writer, "updated", worker->updated_ms);
	if (worker->error[0] != '\0')
		json_writer_text(writer, "error", span_text(worker->error));
}

static void print_event(struct output *output, const char *run, const struct watch_event *event)
{
	struct output_line line;
	begin(&line, output, watch_kind_name(event->kind), run);
	print_time(&line.writer, "time", event->ms);
	if (event->worker != NULL)
		print_worker(&line.writer, event->worker);
	else if (event->has_step)
		json_writer_u64(&line.writer, "step", event->step);
	output_line_end(&line);
}
