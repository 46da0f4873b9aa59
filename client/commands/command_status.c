/* `status`: one line for the server (is it ready, how full is its disk) and one for each run (its
 * head, whether that is proven, how far the fleet is behind, how much the deltas save), and another
 * where a publish could not be adopted. Each run takes three requests: the run, because a list does
 * not say all of it; its head; its fleet. */
#include "base/quantity.h"
#include "client/commands/commands.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "client/commands/run_walk.h"
#include "client/remote/server_faults.h"
#include "client/remote/remote_json.h"
#include "client/work/output.h"
#include "wire/replica_message.h"

enum { NAME_MAX_BYTES = 2048, FLEET_BYTES = 200, FAULT_BYTES = 1024 };

/* Facts about a run that its run message does not contain. */
struct facts {
	bool has_head;
	struct step_message head;
	uint64_t full_bytes;  /* size of the head's checkpoint */
	uint64_t saved_bytes; /* against a full copy of each kept step */
	uint64_t replicas;    /* with a lease */
	uint64_t states[REPLICA_STATE_COUNT];
	uint64_t expired;
	uint64_t without_step;
	bool has_oldest;
	uint64_t oldest; /* the oldest step that a replica holds */
	bool has_report;
	uint64_t oldest_report_s; /* the age of what is longest ago that one with a lease said */
};

struct disk {
	bool is_known;
	uint64_t all, free;
};

static int name_run(struct span bucket, struct span run, struct run_name *out, struct error *err);
static int show_all(
	struct session *session, struct span bucket, const struct run_name *run, struct error *err);
static int show_server(struct session *session, struct remote *remote, struct error *err);
static struct disk ask_disk(struct remote *remote);
static bool read_metric(struct span text, const char *name, uint64_t *out);
static void say_server(struct session *session, const struct disk *disk, struct span faults);
static void say_faults(struct session *session, struct span faults);
static int show(struct session *session, struct remote *remote, const struct run_name *name,
	struct error *err);
static int read_head(struct remote *remote, const struct run_name *run,
	const struct run_message *answer, struct arena *arena, struct facts *facts,
	struct error *err);
static int read_fleet(
	struct remote *remote, const struct run_name *run, struct facts *facts, struct error *err);
static uint64_t count_of(const struct json_node *object, const char *name);
static void say_json(
	struct session *session, const struct run_message *run, const struct facts *facts);
static bool knows_lag(const struct run_message *run, const struct facts *facts);
static uint64_t lag_of(const struct run_message *run, const struct facts *facts);
static void say_text(
	struct session *session, const struct run_message *run, const struct facts *facts);
static void format_fleet(
	const struct run_message *run, const struct facts *facts, char out[FLEET_BYTES]);
static void say_rollback(struct session *session, const struct run_message *run);
static void say_failed(struct session *session, const struct run_message *run);
static int command_status_show(struct session *session, struct remote *remote,
	const struct run_message *listed, struct error *err);

int command_status(struct session *session, struct error *err)
{
	struct object_name name = {0};
	struct run_name run = {0};
	const struct options *const options = session->options;
	if (options->argument_count > 0 &&
		session_object_name(session, options->arguments[0], &name, err) != 0)
		return -1;
	int result = name.key.len > 0 ? name_run(name.bucket, name.key, &run, err) : 0;
	session->usage |= result != 0;
	if (result == 0)
		result = show_all(session, name.bucket, &run, err);
	run_name_release(&run);
	return result;
}

static int name_run(struct span bucket, struct span run, struct run_name *out, struct error *err)
{
	struct buffer text;
	buffer_init(&text, NAME_MAX_BYTES);
	buffer_format(&text, "%.*s/%.*s", (int)bucket.len, (const char *)bucket.data, (int)run.len,
		(const char *)run.data);
	const int result = run_name_init(out, buffer_text(&text), err);
	buffer_release(&text);
	return result;
}

/* Shows the server, and then the named run; or, if run->text is NULL, the runs of `bucket`, which
 * is empty for all buckets. */
static int show_all(
	struct session *session, struct span bucket, const struct run_name *run, struct error *err)
{
	struct remote *const remote = session_connect(session, err);
	if (remote == NULL)
		return -1;
	int result = show_server(session, remote, err);
	if (result == 0)
		result = run->text != NULL
			? show(session, remote, run, err)
			: run_walk(session, remote, bucket, command_status_show, err);
	remote_free(remote);
	return result;
}

static int show_server(struct session *session, struct remote *remote, struct error *err)
{
	const struct http_request request = {.method = "GET", .target = "/-/ready"};
	struct http_response response;
	const int result = remote_send(remote, &request, &response, err);
	if (result == 0) {
		struct span faults;
		const struct disk disk = ask_disk(remote);
		server_faults_of(buffer_span(&response.body), &faults);
		say_server(session, &disk, faults);
	}
	http_response_release(&response);
	return result;
}

/* Reads the size of the server's disk from its metrics. It is not known if the token may not read
 * them, or if an older server does not have them. */
static struct disk ask_disk(struct remote *remote)
{
	const struct http_request request = {.method = "GET", .target = "/-/metrics"};
	struct http_response response = {0};
	struct error ignored = {0};
	struct disk disk = {.is_known = remote_try(remote, &request, &response, &ignored) == 0};
	const struct span text = buffer_span(&response.body);
	disk.is_known = disk.is_known && read_metric(text, "deltabucket_disk_bytes", &disk.all) &&
		read_metric(text, "deltabucket_disk_free_bytes", &disk.free);
	http_response_release(&response);
	return disk;
}

static bool read_metric(struct span text, const char *name, uint64_t *out)
{
	struct span rest = text;
	struct span line;
	struct span key;
	while (rest.len > 0 && span_split(&rest, '\n', &line))
		if (span_split(&line, ' ', &key) && span_equal_text(key, name))
			return span_parse_u64(span_trim(line), out);
	return false;
}

static void say_server(struct session *session, const struct disk *disk, struct span faults)
{
	char free_text[QUANTITY_TEXT_BYTES];
	char all_text[QUANTITY_TEXT_BYTES];
	struct output_line line;
	output_line_begin(&line, &session->output, "server");
	json_writer_text(&line.writer, "endpoint", span_text(session->options->endpoint));
	json_writer_bool(&line.writer, "ready", true);
	if (disk->is_known) {
		json_writer_u64(&line.writer, "disk_bytes", disk->all);
		json_writer_u64(&line.writer, "disk_free_bytes", disk->free);
	}
	server_faults_print(faults, "warnings", &line.writer);
	output_line_end(&line);
	quantity_format(disk->free, free_text);
	quantity_format(disk->all, all_text);
	if (disk->is_known)
		output_result(&session->output, "%s is ready; %s of its disk's %s are free",
			session->options->endpoint, free_text, all_text);
	else
		output_result(&session->output, "%s is ready", session->options->endpoint);
	say_faults(session, faults);
}

static void say_faults(struct session *session, struct span faults)
{
	struct span line;
	while (server_faults_next(&faults, &line)) {
		char text[FAULT_BYTES];
		snprintf(text, sizeof(text), "%.*s", (int)line.len, (const char *)line.data);
		output_clean(text);
		output_result(&session->output, "  %s", text);
	}
}

static int show(struct session *session, struct remote *remote, const struct run_name *name,
	struct error *err)
{
	struct facts facts = {0};
	struct run_message run;
	struct arena *const arena = arena_new(2 * (size_t)REMOTE_RUN_ARENA_BYTES);
	int result = remote_run_find(remote, name, arena, &run, err);
	if (result == 0)
		result = read_head(remote, name, &run, arena, &facts, err);
	if (result == 0)
		result = read_fleet(remote, name, &facts, err);
	if (result == 0) {
		say_json(session, &run, &facts);
		say_text(session, &run, &facts);
		say_rollback(session, &run);
		say_failed(session, &run);
	}
	arena_free(arena);
	return result;
}

static int read_head(struct remote *remote, const struct run_name *run,
	const struct run_message *answer, struct arena *arena, struct facts *facts,
	struct error *err)
{
	if (!answer->has_head)
		return 0;
	if (remote_run_step(remote, run, answer->head, arena, &facts->head, err) != 0)
		return -1;
	facts->has_head = true;
	for (size_t i = 0; i < facts->head.file_count; i++)
		facts->full_bytes += facts->head.files[i].size;
	const double full = (double)facts->full_bytes * (double)answer->steps;
	if (full > (double)answer->bytes && full < (double)UINT64_MAX / 2)
		facts->saved_bytes = facts->full_bytes * answer->steps - answer->bytes;
	return 0;
}

static int read_fleet(
	struct remote *remote, const struct run_name *run, struct facts *facts, struct error *err)
{
	struct json_node *root = NULL;
	char *const target = remote_json_target(run, "replicas?limit=1", NULL);
	const struct remote_json_request request = {.method = "GET", .target = target};
	const int result = remote_json_send(remote, &request, &root, err);
	const struct json_node *const states = json_node_member(root, "states");
	for (enum replica_state i = 0; i < REPLICA_STATE_COUNT; i++) {
		facts->states[i] = count_of(states, replica_state_name(i));
		facts->replicas += facts->states[i];
	}
	facts->expired = count_of(root, "expired");
	facts->without_step = count_of(root, "without_step");
	facts->has_oldest = json_node_u64(json_node_member(root, "oldest"), &facts->oldest);
	facts->has_report =
		json_node_u64(json_node_member(root, "oldest_report_s"), &facts->oldest_report_s);
	json_node_free(root);
	free(target);
	return result;
}

static uint64_t count_of(const struct json_node *object, const char *name)
{
	uint64_t value = 0;
	json_node_u64(json_node_member(object, name), &value);
	return value;
}

static void say_json(
	struct session *session, const struct run_message *run, const struct facts *facts)
{
	struct output_line line;
	output_line_begin(&line, &session->output, "run");
	json_writer_text(&line.writer, "bucket", run->bucket);
	json_writer_text(&line.writer, "run", run->run);
	if (facts->has_head) {
		json_writer_u64(&line.writer, "head", run->head);
		if (facts->head.verified != STEP_PROOF_NONE)
			json_writer_text(&line.writer, "verified",
				span_text(step_proof_name(facts->head.verified)));
	}
	json_writer_bool(&line.writer, "anchor_due", run->anchor_due);
	json_writer_u64(&line.writer, "steps", run->steps);
	json_writer_u64(&line.writer, "bytes", run->bytes);
	json_writer_u64(&line.writer, "full_bytes", facts->full_bytes);
	json_writer_u64(&line.writer, "saved_bytes", facts->saved_bytes);
	json_writer_u64(&line.writer, "replicas", facts->replicas);
	json_writer_u64(&line.writer, "replicas_in_error", facts->states[REPLICA_ERROR]);
	json_writer_u64(&line.writer, "replicas_without_step", facts->without_step);
	json_writer_object(&line.writer, "states");
	for (enum replica_state i = 0; i < REPLICA_STATE_COUNT; i++)
		json_writer_u64(&line.writer, replica_state_name(i), facts->states[i]);
	json_writer_end(&line.writer, '}');
	json_writer_u64(&line.writer, "replicas_expired", facts->expired);
	if (knows_lag(run, facts))
		json_writer_u64(&line.writer, "lag_steps", lag_of(run, facts));
	if (facts->has_report)
		json_writer_u64(&line.writer, "oldest_report_s", facts->oldest_report_s);
	rollback_message_print(&run->rollback, &line.writer);
	run_failed_adoption_print(&run->failed_adoption, &line.writer);
	output_line_end(&line);
}

/* The fleet comes to a rollback from above, and the highest step that a worker holds is not among
 * the facts. */
static bool knows_lag(const struct run_message *run, const struct facts *facts)
{
	return facts->has_oldest && run->has_head &&
		(!run->rollback.is_on || facts->oldest < run->rollback.step);
}

static uint64_t lag_of(const struct run_message *run, const struct facts *facts)
{
	ASSERT(knows_lag(run, facts));
	const uint64_t target = run->rollback.is_on ? run->rollback.step : run->head;
	return target > facts->oldest ? target - facts->oldest : 0;
}

static void say_text(
	struct session *session, const struct run_message *run, const struct facts *facts)
{
	char bytes[QUANTITY_TEXT_BYTES];
	char saved[QUANTITY_TEXT_BYTES];
	char head[64] = "no step";
	char fleet[FLEET_BYTES] = "no replicas";
	quantity_format(run->bytes, bytes);
	quantity_format(facts->saved_bytes, saved);
	if (facts->has_head)
		snprintf(head, sizeof(head), "step %" PRIu64 "%s%s", run->head,
			facts->head.verified != STEP_PROOF_NONE ? ", proof " : "",
			facts->head.verified != STEP_PROOF_NONE
				? step_proof_name(facts->head.verified)
				: "");
	if (facts->replicas > 0)
		format_fleet(run, facts, fleet);
	output_result(&session->output,
		"%.*s/%.*s  %s%s  %" PRIu64 " kept in %s (%s less than full copies)  %s",
		(int)run->bucket.len, (const char *)run->bucket.data, (int)run->run.len,
		(const char *)run->run.data, head, run->anchor_due ? ", anchor due" : "",
		run->steps, bytes, saved, fleet);
}

/* A replica without a step is behind by no number. */
static void format_fleet(
	const struct run_message *run, const struct facts *facts, char out[FLEET_BYTES])
{
	char without[48] = "";
	char lag[48] = "";
	char reports[48] = "";
	if (facts->without_step > 0)
		snprintf(without, sizeof(without), ", %" PRIu64 " without a step",
			facts->without_step);
	if (knows_lag(run, facts))
		snprintf(lag, sizeof(lag), ", the slowest %" PRIu64 " behind", lag_of(run, facts));
	if (facts->has_report)
		snprintf(reports, sizeof(reports), ", reports up to %" PRIu64 " s old",
			facts->oldest_report_s);
	snprintf(out, FLEET_BYTES, "%" PRIu64 " replica%s, %" PRIu64 " in error%s%s%s",
		facts->replicas, facts->replicas == 1 ? "" : "s", facts->states[REPLICA_ERROR],
		without, lag, reports);
}

static void say_rollback(struct session *session, const struct run_message *run)
{
	char created[CLOCK_TEXT_BYTES];
	if (!run->rollback.is_on)
		return;
	clock_format_iso(run->rollback.created_ms, created);
	output_result(&session->output,
		"%.*s/%.*s  its fleet is held at step %" PRIu64
		" since %s; `deltabucket fleet forward` ends that",
		(int)run->bucket.len, (const char *)run->bucket.data, (int)run->run.len,
		(const char *)run->run.data, run->rollback.step, created);
}

static void say_failed(struct session *session, const struct run_message *run)
{
	const struct run_failed_adoption *const failed = &run->failed_adoption;
	char created[CLOCK_TEXT_BYTES];
	if (failed->error.len == 0)
		return;
	clock_format_iso(failed->created_ms, created);
	output_result(&session->output,
		"%.*s/%.*s  the publish %.*s of %s did not become a step: %.*s",
		(int)run->bucket.len, (const char *)run->bucket.data, (int)run->run.len,
		(const char *)run->run.data, (int)failed->publish.len,
		(const char *)failed->publish.data, created, (int)failed->error.len,
		(const char *)failed->error.data);
}

static int command_status_show(struct session *session, struct remote *remote,
	const struct run_message *listed, struct error *err)
{
	struct run_name name;
	int result = name_run(listed->bucket, listed->run, &name, err);
	if (result == 0)
		result = show(session, remote, &name, err);
	run_name_release(&name);
	return result;
}
