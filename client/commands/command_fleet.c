/* `fleet`: holds all followers of a run at an earlier step, and lets them go on. The run stays
 * writable: its trainer notices nothing. */
#include "client/commands/commands.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client/remote/remote_json.h"
#include "client/remote/remote_run.h"

enum { ARENA_BYTES = 1024 * 1024 };

static bool is_order(const struct options *options, const char *word, size_t arguments);
static int change(struct session *session, const struct run_name *run, bool is_rollback,
	uint64_t step, struct error *err);
static int send(struct session *session, const struct run_name *run, struct span body,
	struct arena *arena, struct run_message *out, struct error *err);
static void say(struct session *session, const struct run_name *run, const struct run_message *now);

int command_fleet(struct session *session, struct error *err)
{
	const struct options *const options = session->options;
	const bool is_rollback = is_order(options, "rollback", 3);
	struct run_name run;
	uint64_t step = 0;
	if (!is_rollback && !is_order(options, "forward", 2))
		return session_usage(session, err,
			"fleet takes `rollback BUCKET/RUN STEP` or `forward BUCKET/RUN`");
	if (is_rollback && !span_parse_u64(span_text(options->arguments[2]), &step))
		return session_usage(
			session, err, "\"%s\" is not the number of a step", options->arguments[2]);
	if (run_name_init(&run, options->arguments[1], err) != 0) {
		session->usage = true;
		return -1;
	}
	const int result = change(session, &run, is_rollback, step, err);
	run_name_release(&run);
	return result;
}

static bool is_order(const struct options *options, const char *word, size_t arguments)
{
	return strcmp(options->arguments[0], word) == 0 && options->argument_count == arguments;
}

static int change(struct session *session, const struct run_name *run, bool is_rollback,
	uint64_t step, struct error *err)
{
	struct arena *const arena = arena_new(ARENA_BYTES);
	struct run_message now;
	struct buffer body;
	struct json_writer writer;
	buffer_init(&body, ROLLBACK_MESSAGE_MAX_BYTES);
	json_writer_init(&writer, &body);
	json_writer_object(&writer, NULL);
	json_writer_u64(&writer, "step", step);
	json_writer_end(&writer, '}');
	const int result = send(session, run, is_rollback ? buffer_span(&body) : span_of(NULL, 0),
		arena, &now, err);
	if (result == 0)
		say(session, run, &now);
	buffer_release(&body);
	arena_free(arena);
	return result;
}

/* Without a body it ends the rollback. */
static int send(struct session *session, const struct run_name *run, struct span body,
	struct arena *arena, struct run_message *out, struct error *err)
{
	struct remote *const remote = session_connect(session, err);
	if (remote == NULL)
		return -1;
	char *const target = remote_json_target(run, "rollback", NULL);
	const struct remote_json_request request = {
		.method = body.len > 0 ? "PUT" : "DELETE", .target = target, .body = body};
	struct json_node *answer = NULL;
	struct buffer text;
	buffer_init(&text, ARENA_BYTES);
	int result = remote_json_send(remote, &request, &answer, err);
	if (result == 0) {
		json_node_print(answer, &text);
		result = run_message_parse(buffer_span(&text), arena, out, err);
		if (result != 0)
			err->kind = ERROR_UPSTREAM;
	}
	buffer_release(&text);
	json_node_free(answer);
	free(target);
	remote_free(remote);
	return result;
}

static void say(struct session *session, const struct run_name *run, const struct run_message *now)
{
	const struct rollback_message *const rollback = &now->rollback;
	struct output_line line;
	output_line_begin(&line, &session->output, rollback->is_on ? "rolled_back" : "forwarded");
	json_writer_text(&line.writer, "run", span_text(run->text));
	if (rollback->is_on)
		json_writer_u64(&line.writer, "step", rollback->step);
	if (now->has_head)
		json_writer_u64(&line.writer, "head", now->head);
	output_line_end(&line);
	if (rollback->is_on)
		output_say(&session->output,
			"the fleet of %s is held at step %" PRIu64 "; its newest is step %" PRIu64
			". `deltabucket fleet forward %s` ends that, `deltabucket replicas %s` shows which workers are there",
			run->text, rollback->step, now->head, run->text, run->text);
	else if (now->has_head)
		output_say(&session->output, "the fleet of %s takes the newest step, %" PRIu64,
			run->text, now->head);
	else
		output_say(&session->output, "the fleet of %s takes the newest step", run->text);
}
