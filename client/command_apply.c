#include "client/commands.h"

#include <inttypes.h>

#include "client/progress.h"
#include "weights/delta.h"

static void say_applied(struct session *const session, const struct delta_stats *const stats)
{
	char digest[DIGEST128_TEXT_BYTES];
	struct output_line line;
	digest128_format(&stats->result_digest, digest);
	output_line_begin(&line, &session->output, "applied");
	json_writer_text(&line.writer, "out", span_text(session->options->arguments[2]));
	json_writer_text(&line.writer, "digest", span_text(digest));
	json_writer_u64(&line.writer, "changed_elements", stats->changed_elements);
	json_writer_u64(&line.writer, "changed_tensors", stats->changed_tensors);
	output_line_end(&line);
	output_say(&session->output, "%s: %s, %" PRIu64 " elements changed", session->options->arguments[2], digest,
		stats->changed_elements);
}

/* A delta that names no base applies to any with the same tensors. */
static void warn_unproven(struct session *const session, const struct delta_stats *const stats)
{
	static const struct digest128 unknown;
	const char *const *const words = session->options->arguments;
	struct delta_summary summary;
	struct error ignored = {0};
	if (!digest128_equal(&stats->base_digest, &unknown) || delta_inspect(words[1], &summary, &ignored) != 0)
		return;
	if (!summary.is_delta)
		output_note(&session->output, "%s is a full checkpoint: nothing of %s but its tensors' names counted", words[1], words[0]);
	else
		output_note(&session->output, "%s does not name the checkpoint that it was made from: nothing proves that %s is the one", words[1], words[0]);
}

int command_apply(struct session *const session, struct error *const err)
{
	const struct options *const options = session->options;
	struct checkpoint *const base = checkpoint_open(options->arguments[0], err);
	if (base == NULL)
		return -1;
	struct progress *const progress = progress_new("applying", checkpoint_bytes(base), !session->output.quiet);
	const struct delta_apply_params params = {
		.base = base,
		.delta = options->arguments[1],
		.out = options->arguments[2],
		.files = session->files,
		.threads = (unsigned)options->threads.value,
		.watch = progress_watch(progress, session->interrupt),
	};
	struct delta_stats stats;
	const int result = delta_apply(&params, &stats, err);
	progress_free(progress);
	if (result == 0) {
		say_applied(session, &stats);
		warn_unproven(session, &stats);
	}
	checkpoint_close(base);
	return result;
}
