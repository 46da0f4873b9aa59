#include "client/follow/follow_report.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/quantity.h"

static struct lease_facts facts_of(const struct follow_report *report, enum replica_state state);
static void say(const struct follow_report *report, const struct lease_facts *facts);

void follow_report_state(struct follow_report *report, enum replica_state state)
{
	ASSERT(state != REPLICA_ERROR);
	const struct lease_facts facts = facts_of(report, state);
	say(report, &facts);
}

void follow_report_wanted(struct follow_report *report, enum replica_state state, uint64_t wanted)
{
	ASSERT(state != REPLICA_ERROR);
	struct lease_facts facts = facts_of(report, state);
	facts.has_wanted = true;
	facts.wanted = wanted;
	say(report, &facts);
}

void follow_report_error(struct follow_report *report, const struct error *failure)
{
	struct lease_facts facts = facts_of(report, REPLICA_ERROR);
	facts.error = failure->text;
	say(report, &facts);
}

void follow_report_pause(struct follow_report *report, uint64_t pause_ms)
{
	report->has_pause = true;
	report->pause_ms = pause_ms;
}

void follow_report_step(
	struct follow_report *report, const struct catch_up_result *fetched, int64_t created_ms)
{
	const struct follow_generation *const current = &report->folder->current;
	const int64_t lag_ms = clock_wall_ms() - created_ms;
	ASSERT(report->folder->has_current);
	char digest[DIGEST128_TEXT_BYTES];
	char size[QUANTITY_TEXT_BYTES];
	struct output_line line;
	digest128_format(&current->digest, digest);
	quantity_format(fetched->bytes, size);
	output_line_begin(&line, &report->session->output, "step");
	json_writer_text(&line.writer, "run", span_text(report->run->text));
	json_writer_u64(&line.writer, "step", current->step);
	json_writer_text(&line.writer, "label", span_text(current->label));
	json_writer_text(&line.writer, "digest", span_text(digest));
	json_writer_u64(&line.writer, "bytes", fetched->bytes);
	json_writer_u64(
		&line.writer, "links", fetched->deltas + (fetched->anchor_bytes > 0 ? 1 : 0));
	json_writer_bool(&line.writer, "from_anchor", fetched->anchor_bytes > 0);
	json_writer_i64(&line.writer, "fetch_ms", fetched->fetch_ms);
	json_writer_i64(&line.writer, "apply_ms", fetched->apply_ms);
	json_writer_i64(&line.writer, "lag_ms", lag_ms);
	output_line_end(&line);
	output_say(&report->session->output,
		"step %" PRIu64
		"%s%s%s: %s in %.1f s, applied in %.1f s, %.1f s after it was published",
		current->step, current->label[0] != '\0' ? " (" : "", current->label,
		current->label[0] != '\0' ? ")" : "", size, (double)fetched->fetch_ms / 1000,
		(double)fetched->apply_ms / 1000, (double)lag_ms / 1000);
}

void follow_report_held(struct follow_report *report)
{
	const struct follow_generation *const current = &report->folder->current;
	ASSERT(report->folder->has_current);
	char digest[DIGEST128_TEXT_BYTES];
	struct output_line line;
	digest128_format(&current->digest, digest);
	output_line_begin(&line, &report->session->output, "held");
	json_writer_text(&line.writer, "run", span_text(report->run->text));
	json_writer_u64(&line.writer, "step", current->step);
	json_writer_text(&line.writer, "label", span_text(current->label));
	json_writer_text(&line.writer, "digest", span_text(digest));
	output_line_end(&line);
	output_say(&report->session->output, "step %" PRIu64 " is held already", current->step);
}

void follow_report_failure(
	struct follow_report *report, const char *event, const struct error *failure)
{
	struct output_line line;
	output_line_begin(&line, &report->session->output, event);
	json_writer_text(&line.writer, "code", span_text(error_kind_name(failure->kind)));
	json_writer_text(&line.writer, "message", span_text(failure->text));
	output_line_end(&line);
	output_failure(&report->session->output, "%s", failure->text);
}

static struct lease_facts facts_of(const struct follow_report *report, enum replica_state state)
{
	const struct follow_folder *const folder = report->folder;
	struct lease_facts facts = {.state = state, .has_step = folder->has_current};
	if (folder->has_current) {
		facts.step = folder->current.step;
		facts.digest = folder->current.digest;
		facts.has_pause = report->has_pause;
		facts.pause_ms = report->pause_ms;
	}
	return facts;
}

/* The files of the current generation go with the facts. */
static void say(const struct follow_report *report, const struct lease_facts *facts)
{
	struct lease_facts said = *facts;
	char *const current = said.has_step ? follow_folder_current(report->folder) : NULL;
	said.folder = current;
	said.files = current != NULL ? &report->folder->current.files : NULL;
	lease_say(report->lease, &said);
	free(current);
}
