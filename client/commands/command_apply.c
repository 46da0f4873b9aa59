#include "client/commands/commands.h"

#include <inttypes.h>

#include "client/work/progress.h"
#include "weights/delta/delta.h"

static void say_applied(struct session *session, const struct delta_stats *stats, bool is_delta);
static void warn_unproven(struct session *session, const struct delta_stats *stats, bool is_delta);

int command_apply(struct session *session, struct error *err)
{
	const struct options *const options = session->options;
	ASSERT(options->argument_count == 3);
	struct checkpoint *const base = checkpoint_open(options->arguments[0], err);
	if (base == NULL)
		return -1;
	struct progress *const progress =
		progress_new("applying", checkpoint_bytes(base), session->progress);
	const struct delta_apply_params params = {
		.base = base,
		.delta = options->arguments[1],
		.out = options->arguments[2],
		.files = session->files,
		.threads = (unsigned)options->threads.value,
		.watch = progress_watch(progress, session->stop),
	};
	struct delta_stats stats;
	const int result = delta_apply(&params, &stats, err);
	progress_free(progress);
	if (result == 0) {
		struct delta_summary summary = {.is_delta = true};
		struct error ignored = {0};
		/* cannot fail in practice: delta_apply has just read the file */
		(void)delta_inspect(params.delta, &summary, &ignored);
		say_applied(session, &stats, summary.is_delta);
		warn_unproven(session, &stats, summary.is_delta);
	}
	checkpoint_close(base);
	return result;
}

/* The changes of a full checkpoint are not counted. */
static void say_applied(struct session *session, const struct delta_stats *stats, bool is_delta)
{
	char digest[DIGEST128_TEXT_BYTES];
	struct output_line line;
	digest128_format(&stats->result_digest, digest);
	output_line_begin(&line, &session->output, "applied");
	json_writer_text(&line.writer, "out", span_text(session->options->arguments[2]));
	json_writer_text(&line.writer, "digest", span_text(digest));
	if (is_delta) {
		json_writer_u64(&line.writer, "changed_elements", stats->changed_elements);
		json_writer_u64(&line.writer, "changed_tensors", stats->changed_tensors);
	}
	output_line_end(&line);
	if (is_delta)
		output_say(&session->output, "%s: %s, %" PRIu64 " elements changed",
			session->options->arguments[2], digest, stats->changed_elements);
	else
		output_say(&session->output, "%s: %s", session->options->arguments[2], digest);
}

/* A delta that does not name its base applies to any checkpoint with the same tensors. */
static void warn_unproven(struct session *session, const struct delta_stats *stats, bool is_delta)
{
	static const struct digest128 unknown;
	const char *const *const words = session->options->arguments;
	if (!digest128_equal(&stats->base_digest, &unknown))
		return;
	if (!is_delta)
		output_note(&session->output,
			"%s is a full checkpoint, so nothing of %s was used but its tensors' names",
			words[1], words[0]);
	else
		output_note(&session->output,
			"%s does not name the checkpoint that it was made from, so nothing proves "
			"that it was %s",
			words[1], words[0]);
}
