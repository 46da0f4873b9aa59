/* `runs`: lists, adds and removes runs; command_settings.h has its settings. The first argument may
 * be a word (ls, add, settings, rm) or a bucket. `ls` and `rm` are too short for the name of a
 * bucket. A bucket named `add` or `settings` is listed if it stands alone, or behind `ls`. */
#include "base/quantity.h"
#include "client/commands/commands.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "client/commands/command_settings.h"
#include "client/commands/run_walk.h"
#include "client/remote/remote_json.h"
#include "client/work/refusals.h"

typedef int change_fn(struct session *session, struct remote *remote, const struct run_name *run,
	struct error *err);

static int change_runs(struct session *session, struct error *err);
static int change_run(
	struct session *session, struct remote *remote, const char *text, struct error *err);
static int command_runs_add(struct session *session, struct remote *remote,
	const struct run_name *run, struct error *err);
static void say_event(struct session *session, const char *event, const struct run_name *run);
static int command_runs_remove(struct session *session, struct remote *remote,
	const struct run_name *run, struct error *err);
static int list_runs(struct session *session, const char *bucket, struct error *err);
static int command_runs_say(struct session *session, struct remote *remote,
	const struct run_message *run, struct error *err);

int command_runs(struct session *session, struct error *err)
{
	const char *const *const words = session->options->arguments;
	const size_t count = session->options->argument_count;
	const char *const first = count > 0 ? words[0] : "";
	const bool is_ls = strcmp(first, "ls") == 0, is_rm = strcmp(first, "rm") == 0;
	if (strcmp(first, "settings") == 0 && count > 1)
		return command_settings(session, err);
	if ((is_rm || strcmp(first, "add") == 0) && count > 1)
		return change_runs(session, err);
	const bool is_alone = is_rm || strcmp(first, "settings") == 0 || strcmp(first, "add") == 0;
	if (count > (is_ls ? 2 : 1) || is_alone)
		return session_usage(session, err,
			"runs takes `[ls] [BUCKET]`, `add BUCKET/RUN...`, `settings BUCKET/RUN "
			"[KEY=VALUE...]` or `rm BUCKET/RUN...`");
	return list_runs(
		session, is_ls ? (count > 1 ? words[1] : NULL) : (count > 0 ? first : NULL), err);
}

/* Adds or removes each run of the arguments, as the first one says. */
static int change_runs(struct session *session, struct error *err)
{
	const struct options *const options = session->options;
	ASSERT(options->argument_count > 1);
	struct refusals refusals = {
		.output = &session->output, .total = options->argument_count - 1};
	struct remote *const remote = session_connect(session, err);
	int result = remote == NULL ? -1 : 0;
	for (size_t i = 1; i < options->argument_count && result == 0; i++) {
		struct error failure = {0};
		if (change_run(session, remote, options->arguments[i], &failure) != 0)
			result = refusals_add(&refusals, &failure, err);
	}
	remote_free(remote);
	return result == 0 ? refusals_end(&refusals, err) : -1;
}

static int change_run(
	struct session *session, struct remote *remote, const char *text, struct error *err)
{
	change_fn *const change = strcmp(session->options->arguments[0], "add") == 0
		? command_runs_add
		: command_runs_remove;
	struct run_name run = {0};
	int result = run_name_init(&run, text, err);
	session->usage |= result != 0;
	if (result == 0)
		result = change(session, remote, &run, err);
	run_name_release(&run);
	return result;
}

/* Makes a run without steps, for trainers of another convention, which the run's settings then
 * name. expected_epoch 0 refuses a run that exists, so that it keeps its writer. */
static int command_runs_add(struct session *session, struct remote *remote,
	const struct run_name *run, struct error *err)
{
	const struct remote_json_request request = {.method = "POST",
		.target = run->target,
		.body = span_text("{\"expected_epoch\":0}")};
	if (remote_json_send(remote, &request, NULL, err) != 0)
		return err->kind == ERROR_PRECONDITION
			? error_set(err, ERROR_EXISTS, "there is already a run %s", run->text)
			: -1;
	say_event(session, "run_added", run);
	output_say(&session->output,
		"added run %s, at epoch 1; `deltabucket runs settings %s` shows its settings",
		run->text, run->text);
	return 0;
}

static void say_event(struct session *session, const char *event, const struct run_name *run)
{
	struct output_line line;
	output_line_begin(&line, &session->output, event);
	json_writer_text(&line.writer, "run", span_text(run->text));
	output_line_end(&line);
}

/* Removes a run with its steps. The objects that these were published from stay in the bucket. */
static int command_runs_remove(struct session *session, struct remote *remote,
	const struct run_name *run, struct error *err)
{
	const struct remote_json_request request = {.method = "DELETE", .target = run->target};
	if (remote_json_send(remote, &request, NULL, err) != 0)
		return -1;
	say_event(session, "run_removed", run);
	output_say(&session->output,
		"removed run %s; its objects stay until `deltabucket rm -r %s`", run->text,
		run->text);
	return 0;
}

/* Lists the runs of one bucket, or of all buckets when `bucket` is NULL. */
static int list_runs(struct session *session, const char *bucket, struct error *err)
{
	struct object_name name = {0};
	if (bucket != NULL && session_object_name(session, bucket, &name, err) != 0)
		return -1;
	if (name.key.len > 0)
		return session_usage(session, err,
			"runs takes a bucket; `deltabucket status %s` shows one run, "
			"`deltabucket steps %s` its steps",
			bucket, bucket);
	struct remote *const remote = session_connect(session, err);
	const int result =
		remote == NULL ? -1 : run_walk(session, remote, name.bucket, command_runs_say, err);
	remote_free(remote);
	return result;
}

static int command_runs_say(struct session *session, struct remote *remote,
	const struct run_message *run, struct error *err)
{
	char digest[DIGEST128_TEXT_BYTES];
	char created[CLOCK_TEXT_BYTES];
	char size[QUANTITY_TEXT_BYTES];
	char head[32] = "no step";
	struct output_line line;
	(void)remote;
	(void)err;
	clock_format_iso(run->created_ms, created);
	quantity_format(run->bytes, size);
	output_line_begin(&line, &session->output, NULL);
	json_writer_text(&line.writer, "bucket", run->bucket);
	json_writer_text(&line.writer, "run", run->run);
	json_writer_u64(&line.writer, "epoch", run->epoch);
	if (run->has_head) {
		digest128_format(&run->head_digest, digest);
		json_writer_u64(&line.writer, "head", run->head);
		json_writer_text(&line.writer, "head_digest", span_text(digest));
		snprintf(head, sizeof(head), "step %" PRIu64, run->head);
	}
	json_writer_u64(&line.writer, "steps", run->steps);
	json_writer_u64(&line.writer, "bytes", run->bytes);
	json_writer_u64(&line.writer, "keep_steps", run->settings.keep_steps);
	json_writer_text(&line.writer, "created", span_text(created));
	output_line_end(&line);
	output_result(&session->output, "%.*s/%.*s  %s, %" PRIu64 " kept, %s", (int)run->bucket.len,
		(const char *)run->bucket.data, (int)run->run.len, (const char *)run->run.data,
		head, run->steps, size);
	return 0;
}
