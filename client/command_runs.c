#include "client/commands.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "client/command_settings.h"
#include "client/remote_json.h"
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

/* Its steps go with it; the objects that they were published from stay in the bucket. */
static int remove_run(struct session *const session, struct remote *const remote, const char *const text, struct error *const err)
{
	struct run_name run;
	if (run_name_init(&run, text, err) != 0) {
		session->usage = true;
		return -1;
	}
	const struct remote_json_request request = {.method = "DELETE", .target = run.target};
	const int result = remote_json_send(remote, &request, NULL, err);
	if (result == 0) {
		struct output_line line;
		output_line_begin(&line, &session->output, "run_removed");
		json_writer_text(&line.writer, "run", span_text(run.text));
		output_line_end(&line);
		output_say(&session->output, "removed run %s; its objects stay until `deltabucket rm -r %s`", run.text, run.text);
	}
	run_name_release(&run);
	return result;
}

static int remove_runs(struct session *const session, struct error *const err)
{
	struct remote *const remote = session_connect(session, err);
	int result = remote == NULL ? -1 : 0;
	for (size_t i = 1; i < session->options->argument_count && result == 0; i++)
		result = remove_run(session, remote, session->options->arguments[i], err);
	remote_free(remote);
	return result;
}

/* Of one bucket, or, where `bucket` is NULL, of all. */
static int list_runs(struct session *const session, const char *const bucket, struct error *const err)
{
	struct object_name name = {0};
	if (bucket != NULL && session_object_name(session, bucket, &name, err) != 0)
		return -1;
	if (name.key.len > 0)
		return session_usage(session, err, "runs takes a bucket; `deltabucket steps %s` lists the steps of one run", bucket);
	struct remote *const remote = session_connect(session, err);
	const int result = remote == NULL ? -1 : run_walk(session, remote, name.bucket, say_run, err);
	remote_free(remote);
	return result;
}

/* `ls`, `rm` and `settings` mean no bucket: the first two are too short for the name of one, and one that is called `settings` is
 * listed by `runs ls settings`. */
int command_runs(struct session *const session, struct error *const err)
{
	const char *const *const words = session->options->arguments;
	const size_t count = session->options->argument_count;
	const char *const first = count > 0 ? words[0] : "";
	const bool is_ls = strcmp(first, "ls") == 0;
	if (strcmp(first, "settings") == 0 && count > 1)
		return command_settings(session, err);
	if (strcmp(first, "rm") == 0 && count > 1)
		return remove_runs(session, err);
	if (count > (is_ls ? 2 : 1) || strcmp(first, "rm") == 0)
		return session_usage(session, err, "runs takes `[ls] [BUCKET]`, `settings BUCKET/RUN [KEY=VALUE...]` or `rm BUCKET/RUN...`");
	return list_runs(session, is_ls ? (count > 1 ? words[1] : NULL) : (count > 0 ? first : NULL), err);
}
