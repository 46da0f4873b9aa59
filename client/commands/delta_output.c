#include "client/commands/delta_output.h"

#include <inttypes.h>

#include "base/quantity.h"

static void say_json(struct session *session, const char *out, const struct delta_stats *stats,
	enum delta_format format);
static void add_digests(struct output_line *line, const struct delta_stats *stats);

void delta_output_say(struct session *session, const char *out, const struct delta_stats *stats,
	enum delta_format format)
{
	char delta_size[QUANTITY_TEXT_BYTES];
	char full_size[QUANTITY_TEXT_BYTES];
	say_json(session, out, stats, format);
	quantity_format(stats->delta_bytes, delta_size);
	quantity_format(stats->full_bytes, full_size);
	if (stats->full_bytes == 0)
		output_say(&session->output, "%" PRIu64 " of %" PRIu64 " tensors changed; delta %s",
			stats->changed_tensors, stats->tensors, delta_size);
	else
		output_say(&session->output,
			"%" PRIu64 " of %" PRIu64 " elements changed in %" PRIu64 " of %" PRIu64
			" tensors; delta %s, checkpoint %s",
			stats->changed_elements, stats->elements, stats->changed_tensors,
			stats->tensors, delta_size, full_size);
}

int delta_output_format(struct session *session, const char *flag, const char *name,
	enum delta_format *out_format, struct error *err)
{
	*out_format = DELTA_ULP_CLASS;
	if (name == NULL || delta_format_parse(span_text(name), out_format))
		return 0;
	return session_usage(
		session, err, "%s wants %s, not \"%s\"", flag, delta_format_list(), name);
}

int delta_output_checksum(
	struct session *session, enum delta_checksum *out_checksum, struct error *err)
{
	const char *const name = session->options->checksum;
	*out_checksum = DELTA_XXH3_128;
	if (name == NULL || delta_checksum_parse(span_text(name), out_checksum))
		return 0;
	return session_usage(
		session, err, "--checksum wants xxh3-128, blake3 or adler32, not \"%s\"", name);
}

static void say_json(struct session *session, const char *out, const struct delta_stats *stats,
	enum delta_format format)
{
	struct output_line line;
	output_line_begin(&line, &session->output, "delta");
	json_writer_text(&line.writer, "out", span_text(out));
	json_writer_text(&line.writer, "format", span_text(delta_format_name(format)));
	add_digests(&line, stats);
	if (stats->elements > 0) {
		json_writer_u64(&line.writer, "elements", stats->elements);
		json_writer_u64(&line.writer, "changed_elements", stats->changed_elements);
	}
	json_writer_u64(&line.writer, "tensors", stats->tensors);
	json_writer_u64(&line.writer, "changed_tensors", stats->changed_tensors);
	json_writer_u64(&line.writer, "payload_bytes", stats->payload_bytes);
	json_writer_u64(&line.writer, "delta_bytes", stats->delta_bytes);
	if (stats->full_bytes > 0)
		json_writer_u64(&line.writer, "full_bytes", stats->full_bytes);
	output_line_end(&line);
}

static void add_digests(struct output_line *line, const struct delta_stats *stats)
{
	static const struct digest128 none;
	char text[DIGEST128_TEXT_BYTES];
	/* a fold without a base may know no digests */
	if (digest128_equal(&stats->base_digest, &none) &&
		digest128_equal(&stats->result_digest, &none))
		return;
	digest128_format(&stats->base_digest, text);
	json_writer_text(&line->writer, "base_digest", span_text(text));
	digest128_format(&stats->result_digest, text);
	json_writer_text(&line->writer, "result_digest", span_text(text));
}
