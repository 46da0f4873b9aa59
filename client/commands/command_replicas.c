/* `replicas`: prints the replicas of a run page by page, and a summary after the last page. With
 * --watch it does so again every few seconds, until a signal comes. The summary comes from the
 * server's counts and so needs no memory of the pages before. */
#include "client/commands/commands.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "client/remote/remote_run.h"
#include "client/watch/watch_picture.h"

static int show(struct session *session, struct remote *remote, const struct run_name *run,
	struct error *err);
static void say_page(struct session *session, const struct remote_run_replicas *page);
static void say_replica(struct session *session, const struct replica_message *replica);
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
	char after[REPLICA_ID_MAX_BYTES + 1] = "";
	bool more = true;
	int result = 0;
	while (result == 0 && more && !session->output.failed) {
		struct arena *const arena = arena_new(REMOTE_RUN_ARENA_BYTES);
		struct remote_run_replicas page = {
			.limit = REPLICA_LIST_MAX, .after = span_text(after)};
		result = remote_run_list_replicas(remote, run, arena, &page, err);
		if (result == 0)
			say_page(session, &page);
		more = page.list.next.len > 0;
		watch_text_keep(page.list.next, after, sizeof(after));
		remote_run_replicas_release(&page);
		arena_free(arena);
	}
	return result;
}

/* With --json a replica is printed as the server's own object. */
static void say_page(struct session *session, const struct remote_run_replicas *page)
{
	const struct json_node *const entries = json_node_member(page->answer, "replicas");
	if (page->after.len == 0)
		output_result(&session->output, "%-32s  %-8s  %8s  %-16s  %-10s  %-8s", "replica",
			"state", "step", "behind", "paused", "heard of");
	for (size_t i = 0; i < page->list.count; i++) {
		output_object(&session->output, json_node_at(entries, i));
		say_replica(session, &page->list.replicas[i]);
	}
	if (page->list.next.len == 0)
		say_summary(session, &page->list);
}

static void say_replica(struct session *session, const struct replica_message *replica)
{
	struct watch_worker worker;
	struct watch_cells cells;
	watch_worker_take(&worker, replica);
	watch_picture_format_cells(&worker, clock_wall_ms(), &cells);
	output_result(&session->output, "%-32s  %-8s  %8s  %-16s  %-10s  %-8s  %.*s%s%.*s",
		worker.id, cells.state, cells.step, cells.behind, cells.paused, cells.age,
		(int)replica->tensors.len, (const char *)replica->tensors.data,
		replica->tensors.len > 0 && replica->error.len > 0 ? ": " : "",
		(int)replica->error.len, (const char *)replica->error.data);
}

static void say_summary(struct session *session, const struct replica_list_message *list)
{
	char head[32] = "no step yet";
	char held[64] = "";
	char age[WATCH_AGE_BYTES];
	char reports[32 + WATCH_AGE_BYTES] = "";
	if (list->has_head)
		snprintf(head, sizeof(head), "head is step %" PRIu64, list->head);
	if (list->rollback.is_on)
		snprintf(held, sizeof(held), ", but the fleet is held at step %" PRIu64,
			list->rollback.step);
	watch_picture_format_age((int64_t)(list->counts.oldest_report_s * 1000), age);
	if (list->counts.has_report)
		snprintf(reports, sizeof(reports), "; reports up to %s old", age);
	output_result(&session->output,
		"%s%s; ready %" PRIu64 ", idle %" PRIu64 ", fetching %" PRIu64 ", staging %" PRIu64
		", error %" PRIu64 ", expired %" PRIu64 ", without a step %" PRIu64 "%s",
		head, held, list->counts.states[REPLICA_READY], list->counts.states[REPLICA_IDLE],
		list->counts.states[REPLICA_FETCHING], list->counts.states[REPLICA_STAGING],
		list->counts.states[REPLICA_ERROR], list->counts.expired, list->counts.without_step,
		reports);
}
