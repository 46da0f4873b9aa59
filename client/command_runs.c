#include "client/commands.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "client/command_settings.h"
#include "client/remote_object.h"
#include "client/remote_run.h"

enum { ARENA_BYTES = 64 * 1024 * 1024 };

static void say_run(struct session *const session, const struct run_message *const run)
{
	char digest[DIGEST128_TEXT_BYTES];
	char created[CLOCK_TEXT_BYTES];
	char size[OUTPUT_SIZE_BYTES];
	char head[32] = "no step";
	struct output_line line;
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
}

static int list_bucket(struct session *const session, struct remote *const remote, const struct span bucket, struct error *const err)
{
	struct buffer after;
	buffer_init(&after, 1024);
	bool more = true;
	int result = 0;
	while (result == 0 && more && !session->output.failed) {
		struct arena *const arena = arena_new(ARENA_BYTES);
		struct remote_run_page page = {0};
		result = remote_run_list(remote, bucket, buffer_span(&after), arena, &page, err);
		for (size_t i = 0; i < page.count && result == 0; i++)
			say_run(session, &page.runs[i]);
		more = page.more && page.count > 0;
		if (result == 0 && more) {
			buffer_reset(&after);
			buffer_add_span(&after, page.runs[page.count - 1].run);
		}
		arena_free(arena);
	}
	buffer_release(&after);
	return result;
}

static int list_everything(struct session *const session, struct remote *const remote, struct error *const err)
{
	struct arena *const arena = arena_new(ARENA_BYTES);
	struct listing buckets = {0};
	int result = 0;
	do {
		result = remote_object_list_buckets(remote, buckets.next, arena, &buckets, err);
		for (size_t i = 0; i < buckets.count && result == 0; i++)
			result = list_bucket(session, remote, buckets.entries[i].name, err);
	} while (result == 0 && buckets.next.len > 0 && !session->output.failed);
	arena_free(arena);
	return result;
}

int command_runs(struct session *const session, struct error *const err)
{
	struct object_name name;
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
	int result = -1;
	if (remote != NULL)
		result = options->argument_count > 0 ? list_bucket(session, remote, name.bucket, err) : list_everything(session, remote,
			err);
	remote_free(remote);
	return result;
}
