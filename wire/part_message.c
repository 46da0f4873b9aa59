/* A part is read like a step manifest, with the same readers for the fields that both have. Its
 * tensors are an object of digests by name; there may be more of them than a step manifest has
 * values, so parts have a higher limit of values. */
#include "wire/part_message.h"

#include "wire/step_message_internal.h"

enum {
	TENSOR_NAME_MAX_BYTES = 64 * 1024,
	PART_VALUES_MAX = STEP_MESSAGE_MAX_VALUES + 256 * 1024 /* tensors */
};

static int read_part(const struct json_node *root, struct arena *arena, struct part_message *out,
	struct error *err);
static int read_tensors(const struct json_node *root, struct arena *arena, struct part_message *out,
	struct error *err);
static int read_tensor(struct span name, const struct json_node *value, struct arena *arena,
	struct part_tensor *out, struct error *err);
static void print_tensors(const struct part_message *part, struct json_writer *writer);

int part_message_parse(struct span json, uint64_t step, struct arena *arena,
	struct part_message *out, struct error *err)
{
	struct json_node *const root =
		json_node_parse_within(json, PART_VALUES_MAX, "The part", err);
	if (root == NULL)
		return -1;
	*out = (struct part_message){.step = {.step = step}};
	const int result = read_part(root, arena, out, err);
	json_node_free(root);
	return result == 0 ? 0 : error_wrap(err, "The part is refused");
}

void part_message_print(const struct part_message *part, struct buffer *out)
{
	const struct step_message *const step = &part->step;
	struct json_writer writer;
	ASSERT(step->form_count <= STEP_FORMS_MAX);
	json_writer_init(&writer, out);
	json_writer_object(&writer, NULL);
	json_writer_u64(&writer, "epoch", step->epoch);
	json_writer_text(&writer, "label", step->label);
	message_print_base(&writer, step);
	if (step->has_publish_ms)
		json_writer_u64(&writer, "publish_ms", step->publish_ms);
	json_writer_raw(
		&writer, "metadata", step->metadata.len > 0 ? step->metadata : span_text("{}"));
	message_print_files(&writer, "files", step->files, step->file_count);
	json_writer_array(&writer, "forms");
	for (size_t i = 0; i < step->form_count; i++)
		message_print_form(&writer, NULL, &step->forms[i]);
	json_writer_end(&writer, ']');
	print_tensors(part, &writer);
	json_writer_end(&writer, '}');
}

struct digest128 part_message_content_digest(const struct part_message *part, uint64_t parts)
{
	const struct digest128 step = step_message_content_digest(&part->step);
	struct xxh3_stream *const stream = xxh3_stream_new();
	xxh3_stream_add(stream, span_of(step.bytes, sizeof(step.bytes)));
	message_hash_u64(stream, parts);
	message_hash_u64(stream, part->tensor_count);
	for (size_t i = 0; i < part->tensor_count; i++) {
		message_hash_text(stream, part->tensors[i].name);
		xxh3_stream_add(stream,
			span_of(part->tensors[i].digest.bytes,
				sizeof(part->tensors[i].digest.bytes)));
	}
	const struct digest128 digest = xxh3_stream_result(stream);
	xxh3_stream_free(stream);
	return digest;
}

void part_answer_print(const struct part_answer *answer, struct buffer *out)
{
	struct json_writer writer;
	json_writer_init(&writer, out);
	json_writer_object(&writer, NULL);
	json_writer_u64(&writer, "step", answer->step);
	json_writer_u64(&writer, "part", answer->part);
	json_writer_u64(&writer, "of", answer->parts);
	json_writer_u64(&writer, "received", answer->received);
	json_writer_bool(&writer, "published", answer->published);
	json_writer_end(&writer, '}');
}

static int read_part(const struct json_node *root, struct arena *arena, struct part_message *out,
	struct error *err)
{
	struct step_message *const step = &out->step;
	if (!json_node_is_object(root))
		return error_set(err, ERROR_INVALID, "it must be a JSON object.");
	if (message_u64(root, "epoch", &step->epoch, err) != 0 ||
		message_step_base(root, step, err) != 0)
		return -1;
	if (message_optional_text(root, "label", STEP_LABEL_MAX_BYTES, arena, &step->label, err) !=
		0)
		return -1;
	if (message_publish_ms(root, step, err) != 0 ||
		message_step_metadata(root, arena, &step->metadata, err) != 0)
		return -1;
	if (message_files(root, "files", arena, &step->files, &step->file_count, err) != 0)
		return -1;
	return message_step_forms(root, arena, step, err) != 0
		? -1
		: read_tensors(root, arena, out, err);
}

static int read_tensors(const struct json_node *root, struct arena *arena, struct part_message *out,
	struct error *err)
{
	const struct json_node *const object = json_node_member(root, "tensors");
	const struct json_node *value;
	struct span name;
	if (!json_node_is_object(object))
		return error_set(
			err, ERROR_INVALID, "\"tensors\" is missing or not an object of digests.");
	out->tensors = arena_take_array(arena, json_node_count(object) + 1, sizeof(*out->tensors));
	if (out->tensors == NULL)
		return message_too_large_for_arena(err);
	for (void *cursor = NULL; json_node_each(object, &cursor, &name, &value);)
		if (read_tensor(name, value, arena, &out->tensors[out->tensor_count++], err) != 0)
			return -1;
	return message_arena_check(arena, err);
}

static int read_tensor(struct span name, const struct json_node *value, struct arena *arena,
	struct part_tensor *out, struct error *err)
{
	struct span text;
	if (name.len > TENSOR_NAME_MAX_BYTES || span_find(name, '\0') >= 0)
		return error_set(err, ERROR_INVALID,
			"\"tensors\" has a name of over %d bytes, or one with a NUL.",
			TENSOR_NAME_MAX_BYTES);
	if (!json_node_text(value, &text) || !digest128_parse(text, &out->digest))
		return error_set(err, ERROR_INVALID,
			"the tensor \"%.80s\" must have a digest"
			" (\"xxh3-128:\" and 32 lower-case hex digits).",
			(const char *)name.data);
	out->name = arena_copy(arena, name);
	return 0;
}

static void print_tensors(const struct part_message *part, struct json_writer *writer)
{
	json_writer_object(writer, "tensors");
	for (size_t i = 0; i < part->tensor_count; i++)
		message_print_digest(
			writer, (const char *)part->tensors[i].name.data, &part->tensors[i].digest);
	json_writer_end(writer, '}');
}
