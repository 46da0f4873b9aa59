/* The answers about a run, and the error body. Fields that later servers added are optional when
 * read, because a client may talk to an older server. */
#include "wire/step_message_internal.h"

enum { NAME_MAX_BYTES = 512, CODE_MAX_BYTES = 64, TEXT_MAX_BYTES = 4096 };

static int parse_run(const struct json_node *root, struct arena *arena, struct run_message *out,
	struct error *err);
static int parse_settings(
	const struct json_node *root, struct run_settings *out, struct error *err);
static int parse_parent(const struct json_node *root, struct arena *arena, struct run_parent *out,
	struct error *err);
static int parse_failed_adoption(const struct json_node *root, struct arena *arena,
	struct run_failed_adoption *out, struct error *err);
static int parse_error(const struct json_node *root, struct arena *arena, struct error_message *out,
	struct error *err);

struct run_parent run_parent_of(struct span run, uint64_t step, const struct digest128 *digest)
{
	ASSERT(digest != NULL);
	struct run_parent parent = {.step = step, .digest = *digest};
	const size_t len = run.len < sizeof(parent.run) ? run.len : sizeof(parent.run) - 1;
	for (size_t i = 0; i < len; i++)
		parent.run[i] = (char)run.data[i];
	return parent;
}

int run_message_parse(
	struct span json, struct arena *arena, struct run_message *out, struct error *err)
{
	struct run_message run = {0};
	struct json_node *const root = json_node_parse(json, "the run's facts", err);
	if (root == NULL)
		return -1;
	const int result = parse_run(root, arena, &run, err);
	json_node_free(root);
	if (result != 0)
		return error_wrap(err, "the run's facts are refused");
	*out = run;
	return 0;
}

void run_message_print(const struct run_message *run, struct buffer *out)
{
	struct json_writer writer;
	json_writer_init(&writer, out);
	json_writer_object(&writer, NULL);
	run_message_print_members(run, &writer);
	json_writer_end(&writer, '}');
}

void run_message_print_members(const struct run_message *run, struct json_writer *writer)
{
	json_writer_text(writer, "bucket", run->bucket);
	json_writer_text(writer, "run", run->run);
	json_writer_u64(writer, "epoch", run->epoch);
	if (run->has_head) {
		json_writer_u64(writer, "head", run->head);
		message_print_digest(writer, "head_digest", &run->head_digest);
	} else {
		json_writer_null(writer, "head");
		json_writer_null(writer, "head_digest");
	}
	if (run->has_schema)
		message_print_digest(writer, "schema_digest", &run->schema_digest);
	else
		json_writer_null(writer, "schema_digest");
	json_writer_u64(writer, "steps", run->steps);
	json_writer_u64(writer, "bytes", run->bytes);
	json_writer_u64(writer, "keep_steps", run->settings.keep_steps);
	run_settings_print(&run->settings, "settings", writer);
	if (run->parent.run[0] != '\0') {
		json_writer_object(writer, "parent");
		json_writer_text(writer, "run", span_text(run->parent.run));
		json_writer_u64(writer, "step", run->parent.step);
		message_print_digest(writer, "digest", &run->parent.digest);
		json_writer_end(writer, '}');
	}
	run_failed_adoption_print(&run->failed_adoption, writer);
	if (run->anchor_due)
		json_writer_bool(writer, "anchor_due", true);
	rollback_message_print(&run->rollback, writer);
	message_print_time(writer, "created", run->created_ms);
}

void run_failed_adoption_print(const struct run_failed_adoption *failed, struct json_writer *writer)
{
	if (failed->error.len == 0)
		return;
	json_writer_object(writer, "failed_adoption");
	json_writer_text(writer, "publish", failed->publish);
	message_print_time(writer, "created", failed->created_ms);
	json_writer_text(writer, "error", failed->error);
	json_writer_end(writer, '}');
}

int error_message_parse(
	struct span json, struct arena *arena, struct error_message *out, struct error *err)
{
	struct error_message message = {0};
	struct json_node *const root = json_node_parse(json, "the error answer", err);
	if (root == NULL)
		return -1;
	const int result = parse_error(root, arena, &message, err);
	json_node_free(root);
	if (result != 0)
		return error_wrap(err, "the error answer is refused");
	*out = message;
	return 0;
}

void error_message_print(
	const struct error_message *message, const char *request_id, struct buffer *out)
{
	struct json_writer writer;
	json_writer_init(&writer, out);
	json_writer_object(&writer, NULL);
	json_writer_object(&writer, "error");
	json_writer_text(&writer, "code", message->code);
	json_writer_text(&writer, "message", message->message);
	if (request_id != NULL)
		json_writer_text(&writer, "request_id", span_text(request_id));
	if (message->has_anchor)
		json_writer_u64(&writer, "anchor", message->anchor);
	json_writer_end(&writer, '}');
	json_writer_end(&writer, '}');
}

static int parse_run(const struct json_node *root, struct arena *arena, struct run_message *out,
	struct error *err)
{
	if (message_text(root, "bucket", NAME_MAX_BYTES, arena, &out->bucket, err) != 0)
		return -1;
	if (message_text(root, "run", NAME_MAX_BYTES, arena, &out->run, err) != 0)
		return -1;
	if (message_u64(root, "epoch", &out->epoch, err) != 0)
		return -1;
	out->has_head = !message_absent(root, "head");
	if (out->has_head && message_u64(root, "head", &out->head, err) != 0)
		return -1;
	if (out->has_head && message_digest(root, "head_digest", &out->head_digest, err) != 0)
		return -1;
	if (message_optional_digest(
		    root, "schema_digest", &out->has_schema, &out->schema_digest, err) != 0)
		return -1;
	if (message_u64(root, "steps", &out->steps, err) != 0 ||
		message_u64(root, "bytes", &out->bytes, err) != 0)
		return -1;
	if (parse_settings(root, &out->settings, err) != 0 ||
		parse_parent(root, arena, &out->parent, err) != 0 ||
		parse_failed_adoption(root, arena, &out->failed_adoption, err) != 0 ||
		rollback_message_read(root, &out->rollback, err) != 0)
		return -1;
	if (!message_absent(root, "anchor_due") &&
		!json_node_bool(json_node_member(root, "anchor_due"), &out->anchor_due))
		return error_set(err, ERROR_INVALID, "\"anchor_due\" must be true or false.");
	return message_time(root, "created", &out->created_ms, err);
}

/* keep_steps is also a field of the run, which wins over the one in "settings". It is older than
 * the settings, and servers of that time send only it. */
static int parse_settings(const struct json_node *root, struct run_settings *out, struct error *err)
{
	*out = run_settings_default();
	if (!message_absent(root, "settings") &&
		run_settings_merge(out, json_node_member(root, "settings"), false, err) != 0)
		return -1;
	return message_u64(root, "keep_steps", &out->keep_steps, err);
}

static int parse_parent(const struct json_node *root, struct arena *arena, struct run_parent *out,
	struct error *err)
{
	const struct json_node *const parent = json_node_member(root, "parent");
	struct span run;
	struct digest128 digest;
	uint64_t step;
	if (message_absent(root, "parent"))
		return 0;
	if (message_text(parent, "run", RUN_PARENT_NAME_BYTES - 1, arena, &run, err) != 0)
		return -1;
	if (message_u64(parent, "step", &step, err) != 0 ||
		message_digest(parent, "digest", &digest, err) != 0)
		return -1;
	*out = run_parent_of(run, step, &digest);
	return 0;
}

static int parse_failed_adoption(const struct json_node *root, struct arena *arena,
	struct run_failed_adoption *out, struct error *err)
{
	const struct json_node *const failed = json_node_member(root, "failed_adoption");
	if (message_absent(root, "failed_adoption"))
		return 0;
	if (message_text(failed, "publish", NAME_MAX_BYTES, arena, &out->publish, err) != 0 ||
		message_text(failed, "error", TEXT_MAX_BYTES, arena, &out->error, err) != 0)
		return -1;
	return message_time(failed, "created", &out->created_ms, err);
}

static int parse_error(const struct json_node *root, struct arena *arena, struct error_message *out,
	struct error *err)
{
	const struct json_node *const node = json_node_member(root, "error");
	if (message_text(node, "code", CODE_MAX_BYTES, arena, &out->code, err) != 0)
		return -1;
	if (message_text(node, "message", TEXT_MAX_BYTES, arena, &out->message, err) != 0)
		return -1;
	out->has_anchor = !message_absent(node, "anchor");
	return out->has_anchor ? message_u64(node, "anchor", &out->anchor, err) : 0;
}
