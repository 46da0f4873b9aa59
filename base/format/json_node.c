/* A json_node is jansson's json_t under another name. Reading borrows from the document and never
 * counts references. */
#include "base/format/json_node.h"

#include <jansson.h>
#include <string.h>

enum { DEPTH_MAX = 64 };

static bool is_within(struct span text, size_t values_max, const char *what, struct error *err);
static struct json_node *node_of(json_t *value);
static json_t *value_of(const struct json_node *node);
static int json_node_add_to_buffer(const char *text, size_t len, void *out);

struct json_node *json_node_parse(struct span text, const char *what, struct error *err)
{
	return json_node_parse_within(text, SIZE_MAX, what, err);
}

struct json_node *json_node_parse_within(
	struct span text, size_t values_max, const char *what, struct error *err)
{
	json_error_t fault;
	ASSERT(what != NULL);
	if (!is_within(text, values_max, what, err))
		return NULL;
	const char *const bytes = text.len > 0 ? (const char *)text.data : "";
	json_t *const root = json_loadb(
		bytes, text.len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL | JSON_DECODE_ANY, &fault);
	if (root == NULL)
		error_set(err, ERROR_INVALID, "%s is not valid JSON: line %d column %d: %s", what,
			fault.line, fault.column, fault.text);
	return node_of(root);
}

void json_node_free(struct json_node *root)
{
	json_decref(value_of(root));
}

/* The depth is bounded (DEPTH_MAX). */
void json_node_wipe(struct json_node *root)
{
	json_t *const value = value_of(root);
	const char *name;
	size_t index;
	json_t *child;
	if (json_is_string(value))
		explicit_bzero(
			(void *)(uintptr_t)json_string_value(value), json_string_length(value));
	json_object_foreach(value, name, child) json_node_wipe(node_of(child));
	json_array_foreach(value, index, child) json_node_wipe(node_of(child));
}

bool json_node_is_object(const struct json_node *node)
{
	return json_is_object(value_of(node));
}

bool json_node_is_array(const struct json_node *node)
{
	return json_is_array(value_of(node));
}

bool json_node_is_text(const struct json_node *node)
{
	return json_is_string(value_of(node));
}

bool json_node_is_null(const struct json_node *node)
{
	return json_is_null(value_of(node));
}

size_t json_node_count(const struct json_node *node)
{
	return json_node_is_object(node) ? json_object_size(value_of(node))
					 : json_array_size(value_of(node));
}

const struct json_node *json_node_at(const struct json_node *array, size_t index)
{
	return node_of(json_array_get(value_of(array), index));
}

const struct json_node *json_node_member(const struct json_node *object, const char *name)
{
	return node_of(json_object_get(value_of(object), name));
}

bool json_node_each(const struct json_node *object, void **cursor, struct span *out_name,
	const struct json_node **out_value)
{
	void *const at = *cursor == NULL ? json_object_iter(value_of(object))
					 : json_object_iter_next(value_of(object), *cursor);
	if (at == NULL)
		return false;
	*cursor = at;
	*out_name = span_text(json_object_iter_key(at)); /* jansson refuses names that hold a NUL */
	*out_value = node_of(json_object_iter_value(at));
	return true;
}

bool json_node_text(const struct json_node *node, struct span *out_text)
{
	if (!json_node_is_text(node))
		return false;
	*out_text = span_of(json_string_value(value_of(node)), json_string_length(value_of(node)));
	return true;
}

bool json_node_i64(const struct json_node *node, int64_t *out_value)
{
	if (!json_is_integer(value_of(node)))
		return false;
	*out_value = json_integer_value(value_of(node));
	return true;
}

bool json_node_u64(const struct json_node *node, uint64_t *out_value)
{
	int64_t value = 0;
	if (!json_node_i64(node, &value) || value < 0)
		return false;
	*out_value = (uint64_t)value;
	return true;
}

bool json_node_bool(const struct json_node *node, bool *out_value)
{
	if (!json_is_boolean(value_of(node)))
		return false;
	*out_value = json_is_true(value_of(node));
	return true;
}

void json_node_print(const struct json_node *node, struct buffer *out)
{
	json_dump_callback(
		value_of(node), json_node_add_to_buffer, out, JSON_COMPACT | JSON_ENCODE_ANY);
}

/* jansson accepts 2048 levels, and a value of two bytes takes a hundred bytes of memory, so both
 * are checked before jansson sees the text. Only quotes, escapes and brackets matter here: jansson
 * reports every other fault better. */
static bool is_within(struct span text, size_t values_max, const char *what, struct error *err)
{
	int depth = 0;
	size_t values = 0; /* commas and opening brackets, about as many as values */
	bool quoted = false;
	for (size_t i = 0; i < text.len; i++) {
		const uint8_t byte = text.data[i];
		if (byte == '"')
			quoted = !quoted;
		else if (quoted && byte == '\\')
			i++;
		else if (!quoted && (byte == '{' || byte == '['))
			depth++;
		else if (!quoted && (byte == '}' || byte == ']'))
			depth--;
		values += !quoted && (byte == ',' || byte == '{' || byte == '[');
		if (depth > DEPTH_MAX)
			return error_set(err, ERROR_INVALID, "%s is JSON nested over %d levels",
				       what, DEPTH_MAX) == 0;
		if (values > values_max)
			return error_set(err, ERROR_INVALID, "%s is JSON with more than %zu values",
				       what, values_max) == 0;
	}
	return true;
}

static struct json_node *node_of(json_t *value)
{
	return (struct json_node *)value;
}

static json_t *value_of(const struct json_node *node)
{
	return (json_t *)node; /* jansson's readers take a mutable pointer and change nothing */
}

static int json_node_add_to_buffer(const char *text, size_t len, void *out)
{
	buffer_add(out, text, len);
	return 0;
}
