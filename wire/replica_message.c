/* A report and an answer are one struct: an answer is a report and the fields that the server adds.
 * So one reader takes both, and absent fields of an answer are fine in a request. */
#include "wire/replica_message.h"

#include <string.h>

#include "wire/step_message_internal.h"

static const char *const state_names[REPLICA_STATE_COUNT] = {
	[REPLICA_IDLE] = "idle",
	[REPLICA_FETCHING] = "fetching",
	[REPLICA_STAGING] = "staging",
	[REPLICA_READY] = "ready",
	[REPLICA_ERROR] = "error",
};

static bool is_id_byte(uint8_t byte);
static int read_request(const struct json_node *object, struct arena *arena,
	struct replica_message *out, struct error *err);
static int read_state(const struct json_node *object, enum replica_state *out, struct error *err);
static int optional_u64(const struct json_node *object, const char *name, bool *out_has,
	uint64_t *out, struct error *err);
static int read_answer(const struct json_node *object, struct arena *arena,
	struct replica_message *out, struct error *err);
static int read_staleness(
	const struct json_node *object, struct replica_message *out, struct error *err);
static int read_wants(const struct json_node *object, struct arena *arena,
	struct replica_message *out, struct error *err);
static bool read_want(const struct json_node *node, struct replica_want *out);
static void print_request(const struct replica_message *replica, struct json_writer *writer);
static void print_optional_u64(
	struct json_writer *writer, const char *name, bool has, uint64_t value);
static void print_answer(const struct replica_message *replica, struct json_writer *writer);
static void print_wants(const struct replica_message *replica, struct json_writer *writer);
static int read_list(const struct json_node *root, struct arena *arena,
	struct replica_list_message *out, struct error *err);
static int read_counts(const struct json_node *root, struct fleet_counts *out, struct error *err);

const char *replica_state_name(enum replica_state state)
{
	ASSERT((unsigned)state < REPLICA_STATE_COUNT);
	return state_names[state];
}

int replica_check_id(const char *what, struct span id, struct error *err)
{
	ASSERT(what != NULL);
	if (id.len == 0 || id.len > REPLICA_ID_MAX_BYTES)
		return error_set(err, ERROR_INVALID,
			"%s must have 1 to %d bytes; this one has %zu.", what, REPLICA_ID_MAX_BYTES,
			id.len);
	if (id.data[0] == '.' || id.data[0] == '-')
		return error_set(
			err, ERROR_INVALID, "%s must not begin with '%c'.", what, id.data[0]);
	for (size_t i = 0; i < id.len; i++)
		if (!is_id_byte(id.data[i]))
			return error_set(err, ERROR_INVALID,
				"%s may hold only A-Z, a-z, 0-9, '.', '_', ':' and '-';"
				" byte %zu is another.",
				what, i + 1);
	return 0;
}

int replica_message_read(const struct json_node *object, struct arena *arena,
	struct replica_message *out, struct error *err)
{
	*out = (struct replica_message){.state = REPLICA_IDLE};
	if (!json_node_is_object(object))
		return error_set(err, ERROR_INVALID, "it must be a JSON object.");
	return read_request(object, arena, out, err) != 0 ? -1
							  : read_answer(object, arena, out, err);
}

int replica_message_parse(
	struct span json, struct arena *arena, struct replica_message *out, struct error *err)
{
	struct json_node *const root = json_node_parse(json, "The replica", err);
	if (root == NULL)
		return -1;
	const int result = replica_message_read(root, arena, out, err);
	json_node_free(root);
	return result == 0 ? 0 : error_wrap(err, "The replica is refused");
}

size_t replica_wants_read(const struct json_node *object, struct replica_want *out)
{
	const struct json_node *const wants = json_node_member(object, "wants");
	size_t count = 0;
	for (size_t i = 0; i < json_node_count(wants) && count < REPLICA_WANTS_MAX; i++)
		count += read_want(json_node_at(wants, i), &out[count]);
	return count;
}

void replica_message_print_request(const struct replica_message *replica, struct buffer *out)
{
	struct json_writer writer;
	json_writer_init(&writer, out);
	json_writer_object(&writer, NULL);
	print_request(replica, &writer);
	json_writer_end(&writer, '}');
}

void replica_message_print(const struct replica_message *replica, struct buffer *out)
{
	struct json_writer writer;
	json_writer_init(&writer, out);
	print_answer(replica, &writer);
}

int replica_list_message_read(const struct json_node *answer, struct arena *arena,
	struct replica_list_message *out, struct error *err)
{
	*out = (struct replica_list_message){.replicas = NULL};
	return read_list(answer, arena, out, err) == 0
		? 0
		: error_wrap(err, "the list of replicas is refused");
}

int replica_list_message_parse(
	struct span json, struct arena *arena, struct replica_list_message *out, struct error *err)
{
	struct json_node *const root = json_node_parse(json, "the list of replicas", err);
	if (root == NULL)
		return -1;
	const int result = replica_list_message_read(root, arena, out, err);
	json_node_free(root);
	return result;
}

void fleet_counts_print(const struct fleet_counts *counts, struct json_writer *writer)
{
	print_optional_u64(writer, "oldest", counts->has_oldest, counts->oldest);
	json_writer_u64(writer, "without_step", counts->without_step);
	print_optional_u64(writer, "oldest_report_s", counts->has_report, counts->oldest_report_s);
	json_writer_object(writer, "states");
	for (int state = 0; state < REPLICA_STATE_COUNT; state++)
		json_writer_u64(writer, state_names[state], counts->states[state]);
	json_writer_end(writer, '}');
	json_writer_u64(writer, "expired", counts->expired);
}

void replica_list_message_print(const struct replica_list_message *list, struct buffer *out)
{
	struct json_writer writer;
	json_writer_init(&writer, out);
	json_writer_object(&writer, NULL);
	json_writer_u64(&writer, "lease_s", list->lease_s);
	json_writer_u64(&writer, "report_s", list->report_s);
	print_optional_u64(&writer, "head", list->has_head, list->head);
	rollback_message_print(&list->rollback, &writer);
	fleet_counts_print(&list->counts, &writer);
	json_writer_array(&writer, "replicas");
	for (size_t i = 0; i < list->count; i++)
		print_answer(&list->replicas[i], &writer);
	json_writer_end(&writer, ']');
	if (list->next.len > 0)
		json_writer_text(&writer, "next", list->next);
	json_writer_end(&writer, '}');
}

static bool is_id_byte(uint8_t byte)
{
	return (byte >= 'A' && byte <= 'Z') || (byte >= 'a' && byte <= 'z') ||
		(byte >= '0' && byte <= '9') || byte == '.' || byte == '_' || byte == ':' ||
		byte == '-';
}

static int read_request(const struct json_node *object, struct arena *arena,
	struct replica_message *out, struct error *err)
{
	if (read_state(object, &out->state, err) != 0)
		return -1;
	if (optional_u64(object, "step", &out->has_step, &out->step, err) != 0)
		return -1;
	if (message_optional_digest(object, "digest", &out->has_digest, &out->digest, err) != 0)
		return -1;
	if (optional_u64(object, "wanted", &out->has_wanted, &out->wanted, err) != 0)
		return -1;
	if (message_optional_text(
		    object, "error", REPLICA_ERROR_MAX_BYTES, arena, &out->error, err) != 0)
		return -1;
	if (message_optional_text(
		    object, "tensors", REPLICA_TENSORS_MAX_BYTES, arena, &out->tensors, err) != 0)
		return -1;
	if (message_optional_text(object, "host", REPLICA_HOST_MAX_BYTES, arena, &out->host, err) !=
		0)
		return -1;
	if (optional_u64(object, "pause_ms", &out->has_pause, &out->pause_ms, err) != 0)
		return -1;
	if ((out->has_digest || out->has_pause) && !out->has_step)
		return error_set(err, ERROR_INVALID, "\"%s\" needs \"step\" beside it.",
			out->has_digest ? "digest" : "pause_ms");
	return 0;
}

static int read_state(const struct json_node *object, enum replica_state *out, struct error *err)
{
	struct span text;
	if (json_node_text(json_node_member(object, "state"), &text))
		for (int state = 0; state < REPLICA_STATE_COUNT; state++)
			if (span_equal_text(text, state_names[state])) {
				*out = (enum replica_state)state;
				return 0;
			}
	return error_set(err, ERROR_INVALID,
		"\"state\" is missing or not idle, fetching, staging, ready or error.");
}

static int optional_u64(const struct json_node *object, const char *name, bool *out_has,
	uint64_t *out, struct error *err)
{
	*out_has = !message_absent(object, name);
	*out = 0;
	return *out_has ? message_u64(object, name, out, err) : 0;
}

static int read_answer(const struct json_node *object, struct arena *arena,
	struct replica_message *out, struct error *err)
{
	bool ignored;
	if (message_optional_text(object, "id", REPLICA_ID_MAX_BYTES, arena, &out->id, err) != 0)
		return -1;
	if (message_time(object, "since", &out->since_ms, err) != 0 ||
		message_time(object, "updated", &out->updated_ms, err) != 0)
		return -1;
	if (!message_absent(object, "expired") &&
		!json_node_bool(json_node_member(object, "expired"), &out->expired))
		return error_set(err, ERROR_INVALID, "\"expired\" must be true or false.");
	if (optional_u64(object, "lease_s", &ignored, &out->lease_s, err) != 0 ||
		optional_u64(object, "report_s", &ignored, &out->report_s, err) != 0 ||
		optional_u64(object, "passing_s", &ignored, &out->passing_s, err) != 0)
		return -1;
	if (optional_u64(object, "head", &out->has_head, &out->head, err) != 0)
		return -1;
	if (read_staleness(object, out, err) != 0)
		return -1;
	return message_absent(object, "wants") ? 0 : read_wants(object, arena, out, err);
}

static int read_staleness(
	const struct json_node *object, struct replica_message *out, struct error *err)
{
	const struct json_node *const staleness = json_node_member(object, "staleness");
	out->has_staleness = !message_absent(object, "staleness");
	if (!out->has_staleness)
		return 0;
	if (message_u64(staleness, "steps", &out->behind_steps, err) != 0)
		return -1;
	return message_u64(staleness, "seconds", &out->behind_s, err);
}

static int read_wants(const struct json_node *object, struct arena *arena,
	struct replica_message *out, struct error *err)
{
	out->wants = arena_take_array(arena, REPLICA_WANTS_MAX, sizeof(*out->wants));
	if (out->wants == NULL)
		return message_too_large_for_arena(err);
	out->want_count = replica_wants_read(object, out->wants);
	return 0;
}

static bool read_want(const struct json_node *node, struct replica_want *out)
{
	struct error ignored = {0};
	struct span chunk;
	*out = (struct replica_want){.chunk = ""};
	if (!json_node_text(json_node_member(node, "chunk"), &chunk) ||
		chunk.len != REPLICA_CHUNK_BYTES ||
		message_u64(node, "size", &out->size, &ignored) != 0 ||
		message_digest(node, "digest", &out->digest, &ignored) != 0 ||
		message_u64(node, "offset", &out->offset, &ignored) != 0 ||
		message_u64(node, "length", &out->length, &ignored) != 0)
		return false;
	memcpy(out->chunk, chunk.data, chunk.len);
	return out->length <= out->size && out->offset <= out->size - out->length;
}

static void print_request(const struct replica_message *replica, struct json_writer *writer)
{
	json_writer_text(writer, "state", span_text(replica_state_name(replica->state)));
	print_optional_u64(writer, "step", replica->has_step, replica->step);
	if (replica->has_digest)
		message_print_digest(writer, "digest", &replica->digest);
	print_optional_u64(writer, "wanted", replica->has_wanted, replica->wanted);
	if (replica->error.len > 0)
		json_writer_text(writer, "error", replica->error);
	if (replica->tensors.len > 0)
		json_writer_text(writer, "tensors", replica->tensors);
	if (replica->host.len > 0)
		json_writer_text(writer, "host", replica->host);
	if (replica->has_pause)
		json_writer_u64(writer, "pause_ms", replica->pause_ms);
}

static void print_optional_u64(
	struct json_writer *writer, const char *name, bool has, uint64_t value)
{
	if (has)
		json_writer_u64(writer, name, value);
	else
		json_writer_null(writer, name);
}

static void print_answer(const struct replica_message *replica, struct json_writer *writer)
{
	json_writer_object(writer, NULL);
	json_writer_text(writer, "id", replica->id);
	print_request(replica, writer);
	message_print_time(writer, "since", replica->since_ms);
	message_print_time(writer, "updated", replica->updated_ms);
	json_writer_bool(writer, "expired", replica->expired);
	json_writer_u64(writer, "lease_s", replica->lease_s);
	if (replica->report_s > 0) {
		json_writer_u64(writer, "report_s", replica->report_s);
		json_writer_u64(writer, "passing_s", replica->passing_s);
	}
	print_optional_u64(writer, "head", replica->has_head, replica->head);
	if (replica->has_staleness) {
		json_writer_object(writer, "staleness");
		json_writer_u64(writer, "steps", replica->behind_steps);
		json_writer_u64(writer, "seconds", replica->behind_s);
		json_writer_end(writer, '}');
	} else {
		json_writer_null(writer, "staleness");
	}
	if (replica->want_count > 0)
		print_wants(replica, writer);
	json_writer_end(writer, '}');
}

static void print_wants(const struct replica_message *replica, struct json_writer *writer)
{
	json_writer_array(writer, "wants");
	for (size_t i = 0; i < replica->want_count; i++) {
		const struct replica_want *const want = &replica->wants[i];
		json_writer_object(writer, NULL);
		json_writer_text(writer, "chunk", span_text(want->chunk));
		json_writer_u64(writer, "size", want->size);
		message_print_digest(writer, "digest", &want->digest);
		json_writer_u64(writer, "offset", want->offset);
		json_writer_u64(writer, "length", want->length);
		json_writer_end(writer, '}');
	}
	json_writer_end(writer, ']');
}

static int read_list(const struct json_node *root, struct arena *arena,
	struct replica_list_message *out, struct error *err)
{
	const struct json_node *list;
	if (message_array(root, "replicas", REPLICA_LIST_MAX, &list, err) != 0)
		return -1;
	if (message_optional_text(root, "next", REPLICA_ID_MAX_BYTES, arena, &out->next, err) != 0)
		return -1;
	if (message_u64(root, "lease_s", &out->lease_s, err) != 0 ||
		optional_u64(root, "head", &out->has_head, &out->head, err) != 0)
		return -1;
	bool ignored;
	if (optional_u64(root, "report_s", &ignored, &out->report_s, err) != 0 ||
		rollback_message_read(root, &out->rollback, err) != 0 ||
		read_counts(root, &out->counts, err) != 0)
		return -1;
	out->count = json_node_count(list);
	out->replicas = arena_take_array(arena, out->count + 1, sizeof(*out->replicas));
	if (out->replicas == NULL)
		return message_too_large_for_arena(err);
	for (size_t i = 0; i < out->count; i++)
		if (replica_message_read(json_node_at(list, i), arena, &out->replicas[i], err) != 0)
			return error_wrap(err, "replicas[%zu]", i);
	return 0;
}

static int read_counts(const struct json_node *root, struct fleet_counts *out, struct error *err)
{
	const struct json_node *const states = json_node_member(root, "states");
	bool ignored;
	if (optional_u64(root, "oldest", &out->has_oldest, &out->oldest, err) != 0 ||
		optional_u64(root, "without_step", &ignored, &out->without_step, err) != 0 ||
		optional_u64(
			root, "oldest_report_s", &out->has_report, &out->oldest_report_s, err) != 0)
		return -1;
	for (int state = 0; state < REPLICA_STATE_COUNT; state++)
		if (message_u64(states, state_names[state], &out->states[state], err) != 0)
			return -1;
	return message_u64(root, "expired", &out->expired, err);
}
