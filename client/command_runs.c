#include "client/commands.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "client/command_settings.h"
#include "client/run_walk.h"

static int say_run(struct session *const session, struct remote *const remote, const struct run_message *const run, struct error *const err)
{
	char digest[DIGEST128_TEXT_BYTES];
	char created[CLOCK_TEXT_BYTES];
	char size[OUTPUT_SIZE_BYTES];
	char head[32] = "no step";
	struct output_line line;
	(void)remote;
	(void)err;
	clock_format_iso(run->created_ms, created);
	output_format_size(run->bytes, size);
	output_line_begin(&line, &session->output, NULL);
	json_writer_text(&line.writer, "bucket", run->bucket);
	json_writer_text(&line.writer, "run", run->run);
	json_writer_u64(&line.writer, "epoch", run->epoch);
	if (run->has_head) {
		digest128_format(&run->head_digest, digest);
		json_writer_u64(&line.writer, "head", run->head);
		json_writer_text(&line.writer, "head_digest", span_text(digest));
		snprintf(head, sizeof head, "step %" PRIu64, run->head);
	}
	json_writer_u64(&line.writer, "steps", run->steps);
	json_writer_u64(&line.writer, "bytes", run->bytes);
	json_writer_u64(&line.writer, "keep_steps", run->settings.keep_steps);
	json_writer_text(&line.writer, "created", span_text(created));
	output_line_end(&line);
	output_say(&session->output, "%.*s/%.*s  %s, %" PRIu64 " kept, %s", (int)run->bucket.len, (const char *)run->bucket.data,
		(int)run->run.len,
		(const char *)run->run.data, head, run->steps, size);
	return 0;
}

int command_runs(struct session *const session, struct error *const err)
{
	struct object_name name = {0};
	const struct options *const options = session->options;
	if (options->argument_count > 1 && strcmp(options->arguments[0], "settings") == 0)
		return command_settings(session, err);
	if (options->argument_count > 1)
		return session_usage(session, err, "runs takes one bucket, or `settings BUCKET/RUN [KEY=VALUE...]`");
	if (options->argument_count > 0) {
		if (session_object_name(session, options->arguments[0], &name, err) != 0)
			return -1;
		if (name.key.len > 0)
			return session_usage(session, err, "runs takes a bucket; `deltabucket steps %s` lists the steps of one run",
				options->arguments[0]);
	}
	struct remote *const remote = session_connect(session, err);
	const int result = remote == NULL ? -1 : run_walk(session, remote, name.bucket, say_run, err);
	remote_free(remote);
	return result;
}
