/* Prints the delta's summary, and with --stats a table: one row for the whole delta and one for
 * each of its tensors. A row has the payload's bytes, the share of changed elements, the bits per
 * change and, where they are counted, the shares of changes by 1, 2, 3, 4, and 5 or more ulps. */
#include "client/commands/inspect_delta.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/quantity.h"
#include "weights/delta/delta_stack.h"
#include "weights/delta/delta_survey.h"
#include "weights/model/checkpoint_source.h"

enum { STEP_COUNT = DELTA_STATS_STEPS, NUMBER_BYTES = 32 };

static void add_summary(struct json_writer *writer, const struct delta_summary *summary);
static void say_sentences(struct session *session, const struct delta_summary *summary);
static int say_stats(struct session *session, const char *path, struct error *err);
static int survey_over(struct session *session, const struct delta_reader *reader,
	struct tensor_source *base, struct error *err);
static void say_survey(struct session *session, const struct delta_survey *survey);
static void add_row(struct json_writer *writer, const struct delta_survey *survey,
	const struct delta_survey_row *row, uint64_t elements);
static void add_ratio(struct json_writer *writer, const char *name, double value);
static double share(uint64_t part, uint64_t whole);
static void say_row(struct session *session, const struct delta_survey *survey,
	const struct delta_survey_row *row, uint64_t elements, struct span name);

int inspect_delta(struct session *session, const char *path, const struct delta_summary *summary,
	struct error *err)
{
	struct output_line line;
	output_line_begin(&line, &session->output, "delta");
	json_writer_text(&line.writer, "path", span_text(path));
	add_summary(&line.writer, summary);
	output_line_end(&line);
	say_sentences(session, summary);
	return session->options->stats ? say_stats(session, path, err) : 0;
}

static void add_summary(struct json_writer *writer, const struct delta_summary *summary)
{
	char text[DIGEST128_TEXT_BYTES];
	json_writer_text(writer, "format", span_text(delta_format_name(summary->format)));
	if (summary->has_step)
		json_writer_u64(writer, "step", summary->step);
	if (summary->has_base_step)
		json_writer_u64(writer, "base_step", summary->base_step);
	if (summary->has_digests) {
		digest128_format(&summary->base_digest, text);
		json_writer_text(writer, "base_digest", span_text(text));
		digest128_format(&summary->result_digest, text);
		json_writer_text(writer, "result_digest", span_text(text));
	}
	json_writer_u64(writer, "bytes", summary->bytes);
	if (summary->has_changed_elements)
		json_writer_u64(writer, "changed_elements", summary->changed_elements);
	json_writer_u64(writer, "changed_tensors", summary->changed_tensors);
}

static void say_sentences(struct session *session, const struct delta_summary *summary)
{
	char text[DIGEST128_TEXT_BYTES];
	char size[QUANTITY_TEXT_BYTES];
	char elements[NUMBER_BYTES + 16] = "";
	quantity_format(summary->bytes, size);
	if (summary->has_changed_elements)
		snprintf(elements, sizeof(elements), "%" PRIu64 " elements of ",
			summary->changed_elements);
	output_result(&session->output, "delta:  %s, %s%" PRIu64 " tensors changed, %s",
		delta_format_name(summary->format), elements, summary->changed_tensors, size);
	if (summary->has_step && summary->has_base_step)
		output_result(&session->output, "step:   %" PRIu64 ", made from step %" PRIu64,
			summary->step, summary->base_step);
	else if (summary->has_step)
		output_result(&session->output, "step:   %" PRIu64, summary->step);
	if (!summary->has_digests)
		return;
	digest128_format(&summary->base_digest, text);
	output_result(&session->output, "base:   %s", text);
	digest128_format(&summary->result_digest, text);
	output_result(&session->output, "result: %s", text);
}

static int say_stats(struct session *session, const char *path, struct error *err)
{
	struct checkpoint *base = NULL;
	struct tensor_source *source = NULL;
	struct delta_reader *const reader = delta_reader_open(path, err);
	int result = reader != NULL ? 0 : -1;
	if (result == 0 && session->options->base != NULL) {
		base = checkpoint_open(session->options->base, err);
		source = base != NULL ? checkpoint_source_new(base) : NULL;
		result = base != NULL ? 0 : -1;
	}
	if (result == 0)
		result = survey_over(session, reader, source, err);
	if (result != 0 && source != NULL)
		delta_stack_explain(
			path, source, NULL, (unsigned)session->options->threads.value, err);
	tensor_source_free(source);
	checkpoint_close(base);
	delta_reader_close(reader);
	return result;
}

static int survey_over(struct session *session, const struct delta_reader *reader,
	struct tensor_source *base, struct error *err)
{
	struct delta_survey survey;
	const int result = delta_survey_make(
		&survey, reader, base, (unsigned)session->options->threads.value, err);
	if (result == 0)
		say_survey(session, &survey);
	delta_survey_release(&survey);
	return result;
}

static void say_survey(struct session *session, const struct delta_survey *survey)
{
	struct output_line line;
	output_line_begin(&line, &session->output, "delta_stats");
	add_row(&line.writer, survey, &survey->total, survey->elements);
	output_line_end(&line);
	output_result(&session->output, "%12s %9s %7s %7s%7s%7s%7s%7s %-5s %s", "bytes",
		"changed %", "bits", "|ulp| 1", "2", "3", "4", "5+", "", "tensor");
	say_row(session, survey, &survey->total, survey->elements, span_text("(all)"));
	for (size_t i = 0; i < survey->count; i++) {
		const struct delta_survey_row *const row = &survey->rows[i];
		output_line_begin(&line, &session->output, "delta_tensor");
		json_writer_text(&line.writer, "name", row->name);
		if (survey->has_base)
			json_writer_text(&line.writer, "dtype", span_text(dtype_name(row->dtype)));
		add_row(&line.writer, survey, row, row->stats.elements);
		output_line_end(&line);
		say_row(session, survey, row, row->stats.elements, row->name);
	}
}

static void add_row(struct json_writer *writer, const struct delta_survey *survey,
	const struct delta_survey_row *row, uint64_t elements)
{
	json_writer_u64(writer, "payload_bytes", row->payload_bytes);
	if (elements > 0) {
		json_writer_u64(writer, "elements", elements);
		add_ratio(writer, "density", share(row->stats.changed, elements));
	}
	if (row->stats.changed == 0)
		return;
	json_writer_u64(writer, "changed", row->stats.changed);
	add_ratio(writer, "bits_per_change", 8 * share(row->payload_bytes, row->stats.changed));
	if (!survey->has_base)
		return;
	json_writer_array(writer, "ulp_steps");
	for (unsigned i = 0; i < STEP_COUNT; i++)
		json_writer_u64(writer, NULL, row->stats.ulp_steps[i]);
	json_writer_end(writer, ']');
}

static void add_ratio(struct json_writer *writer, const char *name, double value)
{
	char text[NUMBER_BYTES];
	snprintf(text, sizeof(text), "%.6g", value);
	json_writer_raw(writer, name, span_text(text));
}

static double share(uint64_t part, uint64_t whole)
{
	return whole > 0 ? (double)part / (double)whole : 0;
}

static void say_row(struct session *session, const struct delta_survey *survey,
	const struct delta_survey_row *row, uint64_t elements, struct span name)
{
	char steps[STEP_COUNT * 8 + 1] = "";
	char density[NUMBER_BYTES] = "";
	char bits[NUMBER_BYTES] = "";
	uint64_t counted = 0;
	for (unsigned i = 0; i < STEP_COUNT; i++)
		counted += row->stats.ulp_steps[i];
	for (unsigned i = 0, at = 0; i < STEP_COUNT && counted > 0; i++)
		at += (unsigned)snprintf(steps + at, sizeof(steps) - at, "%7.2f",
			100 * share(row->stats.ulp_steps[i], counted));
	if (elements > 0 && row->stats.changed > 0)
		snprintf(density, sizeof(density), "%.4f",
			100 * share(row->stats.changed, elements));
	if (row->stats.changed > 0)
		snprintf(bits, sizeof(bits), "%.2f",
			8 * share(row->payload_bytes, row->stats.changed));
	output_result(&session->output, "%12" PRIu64 " %9s %7s %-35s %-5s %.*s", row->payload_bytes,
		density, bits, steps,
		survey->has_base && row != &survey->total ? dtype_name(row->dtype) : "",
		(int)name.len, (const char *)name.data);
}
