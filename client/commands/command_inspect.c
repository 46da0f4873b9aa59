#include "base/quantity.h"
#include "client/commands/commands.h"

#include <inttypes.h>

#include "client/commands/inspect_delta.h"
#include "client/local/snapshot.h"
#include "weights/delta/delta.h"

static int inspect_checkpoint(struct session *session, struct error *err);
static void say_checkpoint(struct session *session, const struct snapshot *snapshot);
static void say_tensor(struct session *session, const struct schema_tensor *tensor,
	const struct digest128 *digest);

int command_inspect(struct session *session, struct error *err)
{
	struct delta_summary summary;
	ASSERT(session->options->argument_count == 1);
	if (delta_inspect(session->options->arguments[0], &summary, err) != 0)
		return -1;
	if (!summary.is_delta && session->options->stats)
		return session_usage(session, err, "--stats is for deltas; %s is a checkpoint",
			session->options->arguments[0]);
	if (!summary.is_delta)
		return inspect_checkpoint(session, err);
	if (session->options->tensors)
		return session_usage(session, err,
			"--tensors lists the tensors of a checkpoint; %s is a delta",
			session->options->arguments[0]);
	return inspect_delta(session, session->options->arguments[0], &summary, err);
}

static int inspect_checkpoint(struct session *session, struct error *err)
{
	struct snapshot snapshot;
	if (snapshot_open(&snapshot, session->options->arguments[0], NULL,
		    (unsigned)session->options->threads.value, NULL, err) != 0)
		return -1;
	say_checkpoint(session, &snapshot);
	const struct schema *const schema = checkpoint_schema(snapshot.checkpoint);
	if (session->options->tensors)
		for (size_t i = 0; i < snapshot.tensor_count; i++)
			say_tensor(session, schema_tensor(schema, i), &snapshot.tensor_digests[i]);
	snapshot_close(&snapshot);
	return 0;
}

static void say_checkpoint(struct session *session, const struct snapshot *snapshot)
{
	char digest[DIGEST128_TEXT_BYTES];
	char schema[DIGEST128_TEXT_BYTES];
	char size[QUANTITY_TEXT_BYTES];
	struct output_line line;
	digest128_format(&snapshot->digest, digest);
	digest128_format(&snapshot->schema_digest, schema);
	output_line_begin(&line, &session->output, "checkpoint");
	json_writer_text(&line.writer, "path", span_text(session->options->arguments[0]));
	json_writer_bool(&line.writer, "folder", checkpoint_is_folder(snapshot->checkpoint));
	json_writer_u64(&line.writer, "files", snapshot->file_count);
	json_writer_u64(&line.writer, "tensors", snapshot->tensor_count);
	json_writer_u64(&line.writer, "bytes", snapshot->bytes);
	json_writer_text(&line.writer, "digest", span_text(digest));
	json_writer_text(&line.writer, "schema_digest", span_text(schema));
	output_line_end(&line);
	quantity_format(snapshot->bytes, size);
	output_result(&session->output, "checkpoint: %zu tensors in %zu file%s, %s",
		snapshot->tensor_count, snapshot->file_count, snapshot->file_count == 1 ? "" : "s",
		size);
	output_result(&session->output, "digest:     %s", digest);
	output_result(&session->output, "schema:     %s", schema);
}

static void say_tensor(
	struct session *session, const struct schema_tensor *tensor, const struct digest128 *digest)
{
	char text[DIGEST128_TEXT_BYTES];
	struct buffer shape;
	struct output_line line;
	digest128_format(digest, text);
	buffer_init(&shape, 4096);
	for (unsigned i = 0; i < tensor->rank; i++)
		buffer_format(&shape, "%s%" PRIu64, i > 0 ? "," : "", tensor->shape[i]);
	output_line_begin(&line, &session->output, "tensor");
	json_writer_text(&line.writer, "name", tensor->name);
	json_writer_text(&line.writer, "dtype", span_text(dtype_name(tensor->dtype)));
	json_writer_array(&line.writer, "shape");
	for (unsigned i = 0; i < tensor->rank; i++)
		json_writer_u64(&line.writer, NULL, tensor->shape[i]);
	json_writer_end(&line.writer, ']');
	json_writer_u64(&line.writer, "bytes", tensor->bytes);
	json_writer_text(&line.writer, "digest", span_text(text));
	output_line_end(&line);
	output_result(&session->output, "%s  %s [%s]  %.*s", text, dtype_name(tensor->dtype),
		buffer_text(&shape), (int)tensor->name.len, (const char *)tensor->name.data);
	buffer_release(&shape);
}
