/* `fleet`: holds all followers of a run at an earlier step, and lets them go on. The run stays
 * writable: its trainer notices nothing. */
#include "client/commands/commands.h"

#include <inttypes.h>
#include <string.h>

#include "client/remote/remote_run.h"

static bool is_order(const struct options *options, const char *word, size_t arguments);
static int change(struct session *session, const struct run_name *run, const uint64_t *step,
	struct error *err);
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
	const int result = change(session, &run, is_rollback ? &step : NULL, err);
	run_name_release(&run);
	return result;
}

static bool is_order(const struct options *options, const char *word, size_t arguments)
{
	return strcmp(options->arguments[0], word) == 0 && options->argument_count == arguments;
}

static int change(struct session *session, const struct run_name *run, const uint64_t *step,
	struct error *err)
{
	struct run_message now;
	struct arena *const arena = arena_new(REMOTE_RUN_ARENA_BYTES);
	struct remote *const remote = session_connect(session, err);
	const int result =
		remote == NULL ? -1 : remote_run_rollback(remote, run, step, arena, &now, err);
	if (result == 0)
		say(session, run, &now);
	remote_free(remote);
	arena_free(arena);
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
