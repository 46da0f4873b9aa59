/* Files and forms, which steps, parts and paths share. Lists are sorted by name after they are
 * read. So repeated names stand side by side, where they are found, and the order in which a list
 * came does not matter. */
#include "wire/step_message_internal.h"

#include <stdlib.h>

#include "base/encode.h"

enum { URL_MAX_BYTES = 8192, VERSION_TEXT_BYTES = 32 };

static const char *const kind_names[] = {[STEP_ANCHOR] = "anchor", [STEP_DELTA] = "delta"};

static int parse_file(const struct json_node *node, struct arena *arena, struct step_file *out,
	struct error *err);
static int message_form_compare_files(const void *a, const void *b);
static int refuse_repeated(struct span name, struct error *err);
static int parse_kind(const struct json_node *node, enum step_form_kind *out, struct error *err);
static bool is_format(struct span text);
static int parse_objects(const struct json_node *node, struct arena *arena, struct step_form *out,
	struct error *err);
static int parse_object(const struct json_node *node, struct arena *arena, struct step_object *out,
	struct error *err);
static int parse_version(
	const struct json_node *node, struct arena *arena, struct span *out, struct error *err);
static int message_form_compare_objects(const void *a, const void *b);
static void print_object(struct json_writer *writer, const struct step_object *object);

const char *step_form_kind_name(enum step_form_kind kind)
{
	ASSERT(kind == STEP_ANCHOR || kind == STEP_DELTA);
	return kind_names[kind];
}

uint64_t step_form_bytes(const struct step_form *form)
{
	uint64_t bytes = 0;
	for (size_t i = 0; i < form->object_count; i++)
		if (__builtin_add_overflow(bytes, form->objects[i].size, &bytes) ||
			bytes > INT64_MAX)
			return INT64_MAX;
	return bytes;
}

int message_files(const struct json_node *object, const char *name, struct arena *arena,
	struct step_file **out, size_t *out_count, struct error *err)
{
	const struct json_node *list;
	if (message_array(object, name, STEP_OBJECTS_MAX, &list, err) != 0)
		return -1;
	const size_t count = json_node_count(list);
	struct step_file *const files = arena_take_array(arena, count, sizeof(*files));
	if (files == NULL)
		return message_too_large_for_arena(err);
	for (size_t i = 0; i < count; i++)
		if (parse_file(json_node_at(list, i), arena, &files[i], err) != 0)
			return error_wrap(err, "%s[%zu]", name, i);
	qsort(files, count, sizeof(*files), message_form_compare_files);
	for (size_t i = 1; i < count; i++)
		if (span_equal(files[i].path, files[i - 1].path))
			return refuse_repeated(files[i].path, err);
	*out = files;
	*out_count = count;
	return 0;
}

int message_form(
	const struct json_node *node, struct arena *arena, struct step_form *out, struct error *err)
{
	if (parse_kind(node, &out->kind, err) != 0 ||
		message_text(node, "format", STEP_FORMAT_MAX_BYTES, arena, &out->format, err) != 0)
		return -1;
	if (!is_format(out->format))
		return error_set(err, ERROR_INVALID,
			"\"format\" must have one or more of a-z, 0-9, '-', '_' and '.', and no"
			" other characters.");
	if (parse_objects(node, arena, out, err) != 0)
		return -1;
	if (out->kind == STEP_ANCHOR && out->object_count == 0)
		return error_set(
			err, ERROR_INVALID, "the anchor has no objects; it needs at least one.");
	return 0;
}

void message_print_files(
	struct json_writer *writer, const char *name, const struct step_file *files, size_t count)
{
	ASSERT(files != NULL || count == 0);
	json_writer_array(writer, name);
	for (size_t i = 0; i < count; i++) {
		json_writer_object(writer, NULL);
		json_writer_text(writer, "path", files[i].path);
		json_writer_u64(writer, "size", files[i].size);
		message_print_digest(writer, "digest", &files[i].digest);
		json_writer_end(writer, '}');
	}
	json_writer_end(writer, ']');
}

void message_print_form(struct json_writer *writer, const char *name, const struct step_form *form)
{
	ASSERT(form->objects != NULL || form->object_count == 0);
	json_writer_object(writer, name);
	json_writer_text(writer, "kind", span_text(step_form_kind_name(form->kind)));
	json_writer_text(writer, "format", form->format);
	json_writer_u64(writer, "bytes", step_form_bytes(form));
	json_writer_array(writer, "objects");
	for (size_t i = 0; i < form->object_count; i++)
		print_object(writer, &form->objects[i]);
	json_writer_end(writer, ']');
	json_writer_end(writer, '}');
}

static int parse_file(
	const struct json_node *node, struct arena *arena, struct step_file *out, struct error *err)
{
	if (message_name(node, "path", arena, &out->path, err) != 0 ||
		message_u64(node, "size", &out->size, err) != 0)
		return -1;
	return message_digest(node, "digest", &out->digest, err);
}

static int message_form_compare_files(const void *a, const void *b)
{
	const struct step_file *const left = a;
	const struct step_file *const right = b;
	return span_compare(left->path, right->path);
}

static int refuse_repeated(struct span name, struct error *err)
{
	return error_set(err, ERROR_INVALID, "the name \"%.80s\" stands twice in one list.",
		(const char *)name.data);
}

static int parse_kind(const struct json_node *node, enum step_form_kind *out, struct error *err)
{
	struct span text = {NULL, 0};
	json_node_text(json_node_member(node, "kind"), &text);
	for (size_t i = 0; i < sizeof(kind_names) / sizeof(kind_names[0]); i++) {
		if (!span_equal_text(text, kind_names[i]))
			continue;
		*out = (enum step_form_kind)i;
		return 0;
	}
	return error_set(err, ERROR_INVALID, "\"kind\" must be \"anchor\" or \"delta\".");
}

static bool is_format(struct span text)
{
	for (size_t i = 0; i < text.len; i++) {
		const uint8_t c = text.data[i];
		if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && c != '-' && c != '_' &&
			c != '.')
			return false;
	}
	return text.len > 0;
}

static int parse_objects(
	const struct json_node *node, struct arena *arena, struct step_form *out, struct error *err)
{
	const struct json_node *list;
	if (message_array(node, "objects", STEP_OBJECTS_MAX, &list, err) != 0)
		return -1;
	const size_t count = json_node_count(list);
	struct step_object *const objects = arena_take_array(arena, count, sizeof(*objects));
	if (objects == NULL)
		return message_too_large_for_arena(err);
	for (size_t i = 0; i < count; i++)
		if (parse_object(json_node_at(list, i), arena, &objects[i], err) != 0)
			return error_wrap(err, "objects[%zu]", i);
	qsort(objects, count, sizeof(*objects), message_form_compare_objects);
	for (size_t i = 1; i < count; i++)
		if (span_equal(objects[i].name, objects[i - 1].name))
			return refuse_repeated(objects[i].name, err);
	out->objects = objects;
	out->object_count = count;
	return 0;
}

static int parse_object(const struct json_node *node, struct arena *arena, struct step_object *out,
	struct error *err)
{
	if (message_name(node, "name", arena, &out->name, err) != 0)
		return -1;
	if (message_text(node, "key", STEP_KEY_MAX_BYTES, arena, &out->key, err) != 0)
		return -1;
	if (out->key.len == 0)
		return error_set(err, ERROR_INVALID, "\"key\" must not be empty.");
	if (parse_version(node, arena, &out->version, err) != 0 ||
		message_u64(node, "size", &out->size, err) != 0)
		return -1;
	if (message_digest(node, "digest", &out->digest, err) != 0)
		return -1;
	return message_optional_text(node, "url", URL_MAX_BYTES, arena, &out->url, err);
}

/* Accepts the empty text and 32 lower-case hex digits. */
static int parse_version(
	const struct json_node *node, struct arena *arena, struct span *out, struct error *err)
{
	uint8_t bytes[VERSION_TEXT_BYTES / 2];
	char again[VERSION_TEXT_BYTES + 1];
	if (message_optional_text(node, "version", VERSION_TEXT_BYTES, arena, out, err) != 0)
		return -1;
	if (out->len == 0)
		return 0;
	if (decode_hex(*out, bytes, sizeof(bytes))) {
		encode_hex(span_of(bytes, sizeof(bytes)), again);
		if (span_equal_text(*out, again))
			return 0;
	}
	return error_set(err, ERROR_INVALID, "\"version\" must be 32 lower-case hex digits.");
}

static int message_form_compare_objects(const void *a, const void *b)
{
	const struct step_object *const left = a;
	const struct step_object *const right = b;
	return span_compare(left->name, right->name);
}

static void print_object(struct json_writer *writer, const struct step_object *object)
{
	json_writer_object(writer, NULL);
	json_writer_text(writer, "name", object->name);
	json_writer_text(writer, "key", object->key);
	if (object->version.len > 0)
		json_writer_text(writer, "version", object->version);
	json_writer_u64(writer, "size", object->size);
	message_print_digest(writer, "digest", &object->digest);
	if (object->url.len > 0)
		json_writer_text(writer, "url", object->url);
	json_writer_end(writer, '}');
}
