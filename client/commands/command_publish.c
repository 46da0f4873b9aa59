/* `publish`: checks the options that exclude each other, makes the order, and hands it to one of
 * three publishers: publisher.h for a checkpoint, rank_publisher.h for one of many ranks, and
 * publish_watch.h for a folder, which calls back here (command_publish_one) for each checkpoint. */
#include "base/quantity.h"
#include "client/commands/commands.h"

#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "client/commands/file_word.h"
#include "client/local/subset.h"
#include "client/publish/publish_watch.h"
#include "client/publish/rank_publisher.h"

enum { METADATA_MAX_BYTES = 64 * 1024, METADATA_KEY_MAX_BYTES = 255, RANKS_WAIT_S = 3600 };

static int check_watch(struct session *session, struct error *err);
static int make_order(struct session *session, struct publish_order *order, struct error *err);
static int check_metadata(struct session *session, struct error *err);
static void print_metadata(const struct options *options, struct buffer *out);
static int publish(struct session *session, const struct publish_order *order, struct error *err);
static int command_publish_one(
	struct session *session, const struct publish_order *order, struct error *err);
static int publish_order(struct session *session, const struct publish_order *order,
	struct publish_outcome *outcome, struct error *err);
static int explain_schema(const struct session *session, struct error *err);
static void say_published(struct session *session, const struct publish_order *order,
	const struct publish_outcome *outcome, int64_t total_ms);

int command_publish(struct session *session, struct error *err)
{
	struct publish_order order;
	if (check_watch(session, err) != 0 || make_order(session, &order, err) != 0)
		return -1;
	struct buffer metadata;
	buffer_init(&metadata, METADATA_MAX_BYTES);
	if (session->options->metadata.count > 0) {
		print_metadata(session->options, &metadata);
		order.metadata = buffer_span(&metadata);
	}
	int result = buffer_check(&metadata, "--metadata", err);
	if (result == 0)
		result = publish(session, &order, err);
	buffer_release(&metadata);
	return result;
}

static int check_watch(struct session *session, struct error *err)
{
	const struct options *const options = session->options;
	if (options->watch_folder == NULL && options->argument_count == 0)
		return session_usage(
			session, err, "say what to publish: a CHECKPOINT, or --watch FOLDER");
	if (options->watch_folder == NULL)
		return options->marker == NULL
			? 0
			: session_usage(session, err, "--marker goes with --watch");
	if (options->argument_count > 0)
		return session_usage(session, err, "--watch FOLDER takes no CHECKPOINT beside it");
	if (options->step.given || options->label != NULL || options->rank != NULL)
		return session_usage(
			session, err, "--step, --label and --rank do not go with --watch");
	if (options->marker != NULL && strchr(options->marker, '/') != NULL)
		return session_usage(session, err,
			"--marker wants the name of a file in each sub-folder, not \"%s\"",
			options->marker);
	return 0;
}

static int make_order(struct session *session, struct publish_order *order, struct error *err)
{
	const struct options *const options = session->options;
	*order = (struct publish_order){
		.checkpoint = options->arguments[0],
		.include = options->include.items,
		.include_count = options->include.count,
		.state_folder = options->state,
		.has_step = options->step.given,
		.step = options->step.value,
		.label = options->label,
		.format = DELTA_ULP_CLASS,
		.take_over = options->take_over,
		.create_bucket = options->create_bucket,
		.has_keep_steps = options->keep_steps.given,
		.keep_steps = options->keep_steps.value,
		.threads = (unsigned)options->threads.value,
	};
	if (options->run == NULL)
		return session_usage(session, err, "say which run: --run BUCKET/RUN");
	if (options->state != NULL && file_word_is_no_folder(options->state))
		return session_usage(session, err,
			"--state wants a folder, new or a publisher's, and %s is not one",
			options->state);
	if (options->label != NULL && strlen(options->label) > STEP_LABEL_MAX_BYTES)
		return session_usage(
			session, err, "--label is over %d bytes", STEP_LABEL_MAX_BYTES);
	if (options->format != NULL &&
		(!delta_format_parse(span_text(options->format), &order->format) ||
			order->format == DELTA_FULL))
		return session_usage(session, err,
			"--format wants the format of a delta, like ulp-class, trl-gap or "
			"slime-xor, not \"%s\"",
			options->format);
	session->usage = anchor_policy_parse(options->anchor, &order->anchor, err) != 0;
	return session->usage ? -1 : check_metadata(session, err);
}

static int check_metadata(struct session *session, struct error *err)
{
	for (size_t i = 0; i < session->options->metadata.count; i++)
		if (strcspn(session->options->metadata.items[i], "=") > METADATA_KEY_MAX_BYTES)
			return session_usage(session, err, "a --metadata key is over %d bytes",
				METADATA_KEY_MAX_BYTES);
	return 0;
}

/* check_metadata has run before. */
static void print_metadata(const struct options *options, struct buffer *out)
{
	struct json_writer writer;
	json_writer_init(&writer, out);
	json_writer_object(&writer, NULL);
	for (size_t i = 0; i < options->metadata.count; i++) {
		const char *const equals = strchr(options->metadata.items[i], '=');
		char name[METADATA_KEY_MAX_BYTES + 1];
		ASSERT(equals != NULL);
		const size_t len = (size_t)(equals - options->metadata.items[i]);
		ASSERT(len < sizeof(name));
		memcpy(name, options->metadata.items[i], len);
		name[len] = '\0';
		json_writer_text(&writer, name, span_text(equals + 1));
	}
	json_writer_end(&writer, '}');
}

/* Publishes one checkpoint, or with --watch each one that appears. */
static int publish(struct session *session, const struct publish_order *order, struct error *err)
{
	const struct options *const options = session->options;
	const struct publish_watch_params params = {
		.folder = options->watch_folder,
		.marker = options->marker != NULL ? options->marker : "STABLE",
		.run = options->run,
		.order = *order,
		.publish = command_publish_one,
	};
	return params.folder == NULL ? command_publish_one(session, order, err)
				     : publish_watch(session, &params, err);
}

static int command_publish_one(
	struct session *session, const struct publish_order *order, struct error *err)
{
	const int64_t started = clock_monotonic_ms();
	struct publish_outcome outcome;
	if (publish_order(session, order, &outcome, err) != 0)
		return explain_schema(session, err);
	say_published(session, order, &outcome, clock_monotonic_ms() - started);
	return 0;
}

/* Publishes one checkpoint, alone or as one of many ranks. */
static int publish_order(struct session *session, const struct publish_order *order,
	struct publish_outcome *outcome, struct error *err)
{
	const struct options *const options = session->options;
	struct rank_order rank = {
		.has_epoch = options->epoch.given,
		.epoch = options->epoch.value,
		.wait_s = options->wait.given ? options->wait.value : RANKS_WAIT_S,
	};
	if (options->rank == NULL) {
		if (options->epoch.given || options->wait.given)
			return session_usage(session, err, "--epoch and --wait go with --rank");
		return publisher_run(session, options->run, order, outcome, err);
	}
	if (!subset_parse_rank(options->rank, &rank.rank, &rank.ranks))
		return session_usage(session, err, "--rank wants I/N, like 0/8 to 7/8, not \"%s\"",
			options->rank);
	if (order->format != DELTA_ULP_CLASS || order->anchor.when == ANCHOR_EVERY)
		return session_usage(session, err,
			"with --rank the format is ulp-class, and --anchor is auto, always or never");
	return rank_publisher_run(session, options->run, order, &rank, outcome, err);
}

/* Adds what helps, which is not an anchor: a run keeps the tensors of its first step, because the
 * engines of its workers have laid them out. */
static int explain_schema(const struct session *session, struct error *err)
{
	if (err->kind != ERROR_SCHEMA_MISMATCH)
		return -1;
	return error_advise(err,
		"all steps of run %s have the names, dtypes and shapes of its first: publish this "
		"checkpoint to a run of its own (--run BUCKET/OTHER)",
		session->options->run);
}

static void say_published(struct session *session, const struct publish_order *order,
	const struct publish_outcome *outcome, int64_t total_ms)
{
	char digest[DIGEST128_TEXT_BYTES];
	struct output_line line;
	digest128_format(&outcome->digest, digest);
	output_line_begin(&line, &session->output, "published");
	json_writer_text(&line.writer, "run", span_text(session->options->run));
	json_writer_u64(&line.writer, "step", outcome->step);
	json_writer_text(&line.writer, "label", span_text(order->label));
	json_writer_text(&line.writer, "digest", span_text(digest));
	json_writer_bool(&line.writer, "already", outcome->already);
	json_writer_u64(&line.writer, "checkpoint_bytes", outcome->checkpoint_bytes);
	json_writer_u64(&line.writer, "delta_bytes", outcome->delta_bytes);
	json_writer_u64(&line.writer, "anchor_bytes", outcome->anchor_bytes);
	json_writer_bool(&line.writer, "anchor_due", outcome->anchor_due);
	json_writer_u64(&line.writer, "elements", outcome->stats.elements);
	json_writer_u64(&line.writer, "changed_elements", outcome->stats.changed_elements);
	json_writer_i64(&line.writer, "diff_ms", outcome->diff_ms);
	json_writer_i64(&line.writer, "upload_ms", outcome->upload_ms);
	json_writer_i64(&line.writer, "total_ms", total_ms);
	rollback_message_print(&outcome->rollback, &line.writer);
	output_line_end(&line);
	char delta[QUANTITY_TEXT_BYTES];
	char anchor[QUANTITY_TEXT_BYTES];
	quantity_format(outcome->delta_bytes, delta);
	quantity_format(outcome->anchor_bytes, anchor);
	if (outcome->already && outcome->delta_bytes + outcome->anchor_bytes == 0)
		output_say(&session->output, "step %" PRIu64 " of %s was published already",
			outcome->step, session->options->run);
	else
		output_say(&session->output, "published step %" PRIu64 " of %s: %s%s%s%s in %.1f s",
			outcome->step, session->options->run,
			outcome->delta_bytes > 0 ? "delta " : "",
			outcome->delta_bytes > 0 ? delta : "",
			outcome->anchor_bytes > 0
				? (outcome->delta_bytes > 0 ? ", anchor " : "anchor ")
				: "",
			outcome->anchor_bytes > 0 ? anchor : "", (double)total_ms / 1000);
	if (outcome->rollback.is_on)
		output_say(&session->output,
			"its fleet is held at step %" PRIu64
			" and does not take it until `deltabucket fleet forward %s`",
			outcome->rollback.step, session->options->run);
}
