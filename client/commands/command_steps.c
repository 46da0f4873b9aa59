/* `steps`: lists the steps of a run in rising order, page by page. With --limit N the list begins
 * with the number head + 1 - N: no page before it is fetched. */
#include "base/quantity.h"
#include "client/commands/commands.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "client/remote/remote_run.h"

static int list_from(struct session *session, struct remote *remote, const struct run_name *run,
	uint64_t from, struct error *err);
static void say_step(struct session *session, const struct step_message *step);
static void format_facts(const struct step_message *step, char *out, size_t size);
static void say_json(struct session *session, const struct step_message *step, const char *digest,
	const char *created);
static void add_form(struct json_writer *writer, const struct step_form *form);

int command_steps(struct session *session, struct error *err)
{
	const struct options *const options = session->options;
	struct run_name run;
	struct run_message facts;
	ASSERT(options->argument_count == 1);
	if (run_name_init(&run, options->arguments[0], err) != 0) {
		session->usage = true;
		return -1;
	}
	struct arena *const arena = arena_new(REMOTE_RUN_ARENA_BYTES);
	struct remote *const remote = session_connect(session, err);
	int result = remote == NULL ? -1 : remote_run_find(remote, &run, arena, &facts, err);
	if (result == 0 && facts.has_head) {
		const bool cut = options->limit.given && facts.head + 1 > options->limit.value;
		result = list_from(session, remote, &run,
			cut ? facts.head + 1 - options->limit.value : 0, err);
	}
	remote_free(remote);
	arena_free(arena);
	run_name_release(&run);
	return result;
}

static int list_from(struct session *session, struct remote *remote, const struct run_name *run,
	uint64_t from, struct error *err)
{
	bool more = true;
	bool is_first = true;
	int result = 0;
	while (result == 0 && more && !session->output.failed) {
		struct arena *const arena = arena_new(2 * (size_t)REMOTE_RUN_ARENA_BYTES);
		struct remote_run_page page = {0};
		result = remote_run_list_steps(remote, run, from, arena, &page, err);
		if (result == 0 && is_first && page.count > 0)
			output_result(&session->output, "%6s  %-24s  %-*s  %s", "step", "published",
				DIGEST128_TEXT_BYTES - 1, "digest", "forms");
		is_first = false;
		for (size_t i = 0; i < page.count && result == 0; i++)
			say_step(session, &page.steps[i]);
		more = page.more && page.count > 0;
		if (result == 0 && more)
			from = page.steps[page.count - 1].step + 1;
		arena_free(arena);
	}
	return result;
}

static void say_step(struct session *session, const struct step_message *step)
{
	char digest[DIGEST128_TEXT_BYTES];
	char created[CLOCK_TEXT_BYTES];
	char forms[128] = "";
	char facts[96] = "";
	digest128_format(&step->digest, digest);
	clock_format_iso(step->created_ms, created);
	say_json(session, step, digest, created);
	for (size_t i = 0; i < step->form_count; i++) {
		const size_t used = i == 0 ? 0 : strlen(forms);
		char size[QUANTITY_TEXT_BYTES];
		quantity_format(step_form_bytes(&step->forms[i]), size);
		snprintf(forms + used, sizeof(forms) - used, "%s%s %s", i > 0 ? ", " : "",
			step_form_kind_name(step->forms[i].kind), size);
	}
	format_facts(step, facts, sizeof(facts));
	output_result(&session->output, "%6" PRIu64 "  %s  %s  %s%s%s%.*s%s%.*s", step->step,
		created, digest, step->collected ? "removed" : forms, facts,
		step->label.len > 0 ? "  " : "", (int)step->label.len,
		(const char *)step->label.data,
		step->verified == STEP_PROOF_FAILED ? "  FAILED: " : "",
		(int)step->verify_error.len, (const char *)step->verify_error.data);
}

/* What is known of the density and of the time that the publish took. */
static void format_facts(const struct step_message *step, char *out, size_t size)
{
	size_t used = 0;
	if (step->has_changed && step->changed_of > 0)
		used = (size_t)snprintf(out, size, "  %.2f%% changed",
			100 * (double)step->changed_elements / (double)step->changed_of);
	if (step->has_publish_ms)
		snprintf(out + used, size - used,
			step->publish_ms < 1000 ? "  %.0f ms" : "  %.1f s",
			step->publish_ms < 1000 ? (double)step->publish_ms
						: (double)step->publish_ms / 1000);
}

static void say_json(struct session *session, const struct step_message *step, const char *digest,
	const char *created)
{
	struct output_line line;
	output_line_begin(&line, &session->output, NULL);
	json_writer_u64(&line.writer, "step", step->step);
	json_writer_text(&line.writer, "label", step->label);
	json_writer_text(&line.writer, "digest", span_text(digest));
	json_writer_u64(&line.writer, "epoch", step->epoch);
	json_writer_bool(&line.writer, "collected", step->collected);
	if (step->verified != STEP_PROOF_NONE)
		json_writer_text(
			&line.writer, "verified", span_text(step_proof_name(step->verified)));
	if (step->verify_error.len > 0)
		json_writer_text(&line.writer, "verify_error", step->verify_error);
	json_writer_text(&line.writer, "created", span_text(created));
	if (step->has_publish_ms)
		json_writer_u64(&line.writer, "publish_ms", step->publish_ms);
	if (step->has_changed) {
		json_writer_object(&line.writer, "changed");
		json_writer_u64(&line.writer, "elements", step->changed_elements);
		json_writer_u64(&line.writer, "of", step->changed_of);
		json_writer_end(&line.writer, '}');
	}
	if (step->metadata.len > 0)
		json_writer_raw(&line.writer, "metadata", step->metadata);
	json_writer_array(&line.writer, "forms");
	for (size_t i = 0; i < step->form_count; i++)
		add_form(&line.writer, &step->forms[i]);
	json_writer_end(&line.writer, ']');
	output_line_end(&line);
}

static void add_form(struct json_writer *writer, const struct step_form *form)
{
	json_writer_object(writer, NULL);
	json_writer_text(writer, "kind", span_text(step_form_kind_name(form->kind)));
	json_writer_text(writer, "format", form->format);
	json_writer_u64(writer, "bytes", step_form_bytes(form));
	json_writer_u64(writer, "objects", form->object_count);
	json_writer_end(writer, '}');
}
