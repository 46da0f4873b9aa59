#include "client/commands.h"

#include <inttypes.h>

#include "weights/delta.h"

static void say_delta(struct session *const session, const struct delta_stats *const stats, const enum delta_format format)
{
	char base[DIGEST128_TEXT_BYTES];
	char result[DIGEST128_TEXT_BYTES];
	char delta_size[OUTPUT_SIZE_BYTES];
	char full_size[OUTPUT_SIZE_BYTES];
	struct output_line line;
	digest128_format(&stats->base_digest, base);
	digest128_format(&stats->result_digest, result);
	output_line_begin(&line, &session->output, "delta");
	json_writer_text(&line.writer, "out", span_text(session->options->arguments[2]));
	json_writer_text(&line.writer, "format", span_text(delta_format_name(format)));
	json_writer_text(&line.writer, "base_digest", span_text(base));
	json_writer_text(&line.writer, "result_digest", span_text(result));
	json_writer_u64(&line.writer, "elements", stats->elements);
	json_writer_u64(&line.writer, "changed_elements", stats->changed_elements);
	json_writer_u64(&line.writer, "tensors", stats->tensors);
	json_writer_u64(&line.writer, "changed_tensors", stats->changed_tensors);
	json_writer_u64(&line.writer, "delta_bytes", stats->delta_bytes);
	json_writer_u64(&line.writer, "full_bytes", stats->full_bytes);
	output_line_end(&line);
	output_format_size(stats->delta_bytes, delta_size);
	output_format_size(stats->full_bytes, full_size);
	output_say(&session->output,
		"%" PRIu64 " of %" PRIu64 " elements changed in %" PRIu64 " of %" PRIu64 " tensors; delta %s, checkpoint %s",
		stats->changed_elements, stats->elements, stats->changed_tensors, stats->tensors, delta_size, full_size);
}

int command_diff(struct session *const session, struct error *const err)
{
	const struct options *const options = session->options;
	enum delta_format format = DELTA_TRL_GAP;
	if (options->format != NULL && !delta_format_parse(span_text(options->format), &format))
		return session_usage(session, err, "--format wants trl-gap, trl-raw or trl-v1, not \"%s\"", options->format);
	struct checkpoint *const base = checkpoint_open(options->arguments[0], err);
	struct checkpoint *const next = base == NULL ? NULL : checkpoint_open(options->arguments[1], err);
	struct delta_stats stats;
	int result = -1;
	if (next != NULL) {
		const struct delta_diff_params params = {
			.base = base,
			.next = next,
			.format = format,
			.threads = (unsigned)options->threads.value,
			.out = options->arguments[2],
		};
		result = delta_diff(&params, &stats, err);
	}
	if (result == 0)
		say_delta(session, &stats, format);
	checkpoint_close(next);
	checkpoint_close(base);
	return result;
}
