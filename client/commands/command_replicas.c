/* `replicas`: prints the replicas of a run page by page, and a summary after the last page. With
 * --watch it does so again every few seconds, until a signal comes. The summary comes from the
 * server's counts and so needs no memory of the pages before. */
#include "client/commands/commands.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "client/remote/remote_json.h"
#include "client/remote/remote_run.h"
#include "wire/replica_message.h"

enum { AGE_BYTES = 24 };

static int show(struct session *session, struct remote *remote, const struct run_name *run,
	struct error *err);
static int show_page(struct session *session, struct remote *remote, const char *target,
	struct buffer *after, bool *out_more, struct error *err);
static void say_replica(struct session *session, const struct replica_message *replica);
static void format_age(int64_t ms, char out[AGE_BYTES]);
static void say_summary(struct session *session, const struct replica_list_message *list);

int command_replicas(struct session *session, struct error *err)
{
	struct run_name run;
	ASSERT(session->options->argument_count == 1);
	if (run_name_init(&run, session->options->arguments[0], err) != 0) {
		session->usage = true;
		return -1;
	}
	struct remote *const remote = session_connect(session, err);
	int result = remote == NULL ? -1 : show(session, remote, &run, err);
	while (result == 0 && session->options->watch.given && !session->output.failed &&
		stop_sleep(session->stop, (int64_t)session->options->watch.value * 1000)) {
		output_result(&session->output, "%s", "");
		result = show(session, remote, &run, err);
	}
	remote_free(remote);
	run_name_release(&run);
	return result;
}

static int show(struct session *session, struct remote *remote, const struct run_name *run,
	struct error *err)
{
	struct buffer after;
	bool more = true;
	int result = 0;
	buffer_init(&after, REPLICA_ID_MAX_BYTES);
	while (result == 0 && more && !session->output.failed) {
		struct buffer below;
		buffer_init(&below, 1024); /* an id has no byte that a query must escape */
		buffer_format(&below, "replicas?limit=%d", REPLICA_LIST_MAX);
		if (buffer_span(&after).len > 0)
			buffer_format(&below, "&after=%s", buffer_text(&after));
		char *const target = remote_json_target(run, buffer_text(&below), NULL);
		result = show_page(session, remote, target, &after, &more, err);
		free(target);
		buffer_release(&below);
	}
	buffer_release(&after);
	return result;
}

/* Prints one page and puts the next page's start into `after`. With --json a replica is printed as
 * the server's own object. */
static int show_page(struct session *session, struct remote *remote, const char *target,
	struct buffer *after, bool *out_more, struct error *err)
{
	struct json_node *root = NULL;
	struct replica_list_message list = {0};
	struct buffer text;
	struct arena *const arena = arena_new(REMOTE_RUN_ARENA_BYTES);
	const struct remote_json_request request = {.method = "GET", .target = target};
	buffer_init(&text, REMOTE_RUN_ARENA_BYTES / 2);
	int result = remote_json_send(remote, &request, &root, err);
	if (result == 0) {
		json_node_print(root, &text);
		result = buffer_check(&text, "the list of replicas", err);
	}
	if (result == 0 && replica_list_message_parse(buffer_span(&text), arena, &list, err) != 0) {
		err->kind = ERROR_UPSTREAM;
		result = -1;
	}
	if (result == 0 && buffer_span(after).len == 0)
		output_result(&session->output, "%-32s  %-8s  %8s  %-16s  %-10s  %-8s", "replica",
			"state", "step", "behind", "paused", "heard of");
	const struct json_node *const entries = json_node_member(root, "replicas");
	for (size_t i = 0; i < list.count && result == 0; i++) {
		output_object(&session->output, json_node_at(entries, i));
		say_replica(session, &list.replicas[i]);
	}
	buffer_reset(after);
	buffer_add_span(after, list.next);
	*out_more = list.next.len > 0;
	if (result == 0 && !*out_more)
		say_summary(session, &list);
	buffer_release(&text);
	arena_free(arena);
	json_node_free(root);
	return result;
}

static void say_replica(struct session *session, const struct replica_message *replica)
{
	char age[AGE_BYTES];
	char step[24] = "-";
	char behind[48] = "";
	char pause[32] = "";
	format_age(clock_wall_ms() - replica->updated_ms, age);
	if (replica->has_step)
		snprintf(step, sizeof(step), "%" PRIu64, replica->step);
	if (replica->has_staleness)
		snprintf(behind, sizeof(behind), "%" PRIu64 " (%" PRIu64 " s)",
			replica->behind_steps, replica->behind_s);
	if (replica->has_pause)
		snprintf(pause, sizeof(pause), "%" PRIu64 " ms", replica->pause_ms);
	output_result(&session->output, "%-32.*s  %-8s  %8s  %-16s  %-10s  %-8s  %.*s%s%.*s",
		(int)replica->id.len, (const char *)replica->id.data,
		replica->expired ? "expired" : replica_state_name(replica->state), step, behind,
		pause, age, (int)replica->tensors.len, (const char *)replica->tensors.data,
		replica->tensors.len > 0 && replica->error.len > 0 ? ": " : "",
		(int)replica->error.len, (const char *)replica->error.data);
}

static void format_age(int64_t ms, char out[AGE_BYTES])
{
	const int64_t seconds = ms < 0 ? 0 : ms / 1000;
	if (seconds < 120)
		snprintf(out, AGE_BYTES, "%" PRId64 " s", seconds);
	else if (seconds < 2 * 3600)
		snprintf(out, AGE_BYTES, "%" PRId64 " min", seconds / 60);
	else
		snprintf(out, AGE_BYTES, "%" PRId64 " h", seconds / 3600);
}

static void say_summary(struct session *session, const struct replica_list_message *list)
{
	char head[32] = "no step yet";
	char held[64] = "";
	char age[AGE_BYTES];
	char reports[32 + AGE_BYTES] = "";
	if (list->has_head)
		snprintf(head, sizeof(head), "head is step %" PRIu64, list->head);
	if (list->rollback.is_on)
		snprintf(held, sizeof(held), ", but the fleet is held at step %" PRIu64,
			list->rollback.step);
	format_age((int64_t)(list->oldest_report_s * 1000), age);
	if (list->has_report)
		snprintf(reports, sizeof(reports), "; reports up to %s old", age);
	output_result(&session->output,
		"%s%s; ready %" PRIu64 ", idle %" PRIu64 ", fetching %" PRIu64 ", staging %" PRIu64
		", error %" PRIu64 ", expired %" PRIu64 ", without a step %" PRIu64 "%s",
		head, held, list->states[REPLICA_READY], list->states[REPLICA_IDLE],
		list->states[REPLICA_FETCHING], list->states[REPLICA_STAGING],
		list->states[REPLICA_ERROR], list->expired, list->without_step, reports);
}
