/* Readers and printers of single fields. A reader names the field in its message; callers that read
 * nested fields put their place before it with error_wrap: "forms[0]: objects[2]: ...". */
#include "wire/step_message_internal.h"

#include "base/clock.h"

static int bad_field(const char *name, const char *wanted, struct error *err);
static bool is_safe_name(struct span name);

bool message_absent(const struct json_node *object, const char *name)
{
	const struct json_node *const member = json_node_member(object, name);
	return member == NULL || json_node_is_null(member);
}

int message_u64(const struct json_node *object, const char *name, uint64_t *out, struct error *err)
{
	return json_node_u64(json_node_member(object, name), out)
		? 0
		: bad_field(name, "a whole number from 0 to 9223372036854775807", err);
}

int message_digest(
	const struct json_node *object, const char *name, struct digest128 *out, struct error *err)
{
	struct span text;
	if (!json_node_text(json_node_member(object, name), &text) || !digest128_parse(text, out))
		return bad_field(
			name, "a digest (\"xxh3-128:\" and 32 lower-case hex digits)", err);
	return 0;
}

int message_optional_digest(const struct json_node *object, const char *name, bool *out_has,
	struct digest128 *out, struct error *err)
{
	*out_has = !message_absent(object, name);
	*out = (struct digest128){{0}};
	return *out_has ? message_digest(object, name, out, err) : 0;
}

int message_arena_check(const struct arena *arena, struct error *err)
{
	return arena_overflowed(arena) ? message_too_large_for_arena(err) : 0;
}

int message_too_large_for_arena(struct error *err)
{
	return error_set(err, ERROR_TOO_LARGE, "the message needs more memory than it may have.");
}

int message_text(const struct json_node *object, const char *name, size_t max_bytes,
	struct arena *arena, struct span *out, struct error *err)
{
	struct span text;
	ASSERT(arena != NULL);
	if (!json_node_text(json_node_member(object, name), &text) || span_find(text, '\0') >= 0)
		return bad_field(name, "a text without NUL", err);
	if (text.len > max_bytes)
		return error_set(err, ERROR_INVALID, "\"%s\" has %zu bytes, over the limit of %zu.",
			name, text.len, max_bytes);
	*out = arena_copy(arena, text);
	return out->data != NULL ? 0 : message_too_large_for_arena(err);
}

int message_optional_text(const struct json_node *object, const char *name, size_t max_bytes,
	struct arena *arena, struct span *out, struct error *err)
{
	*out = span_of(NULL, 0);
	return message_absent(object, name)
		? 0
		: message_text(object, name, max_bytes, arena, out, err);
}

int message_time(
	const struct json_node *object, const char *name, int64_t *out_ms, struct error *err)
{
	struct span text;
	*out_ms = 0;
	if (message_absent(object, name))
		return 0;
	if (!json_node_text(json_node_member(object, name), &text) ||
		!clock_parse_http(text, out_ms))
		return bad_field(name, "a time like 2026-01-02T03:04:05.000Z", err);
	return 0;
}

int message_name(const struct json_node *object, const char *name, struct arena *arena,
	struct span *out, struct error *err)
{
	if (message_text(object, name, STEP_NAME_MAX_BYTES, arena, out, err) != 0)
		return -1;
	if (!is_safe_name(*out))
		return error_set(err, ERROR_INVALID,
			"\"%s\" is \"%.80s\" and must be a path below a folder, without \".\","
			" \"..\", empty segments and control characters.",
			name, (const char *)out->data);
	return 0;
}

int message_array(const struct json_node *object, const char *name, size_t max,
	const struct json_node **out, struct error *err)
{
	const struct json_node *const array = json_node_member(object, name);
	if (!json_node_is_array(array))
		return bad_field(name, "a list", err);
	if (json_node_count(array) > max)
		return error_set(err, ERROR_INVALID,
			"\"%s\" has %zu elements, over the limit of %zu.", name,
			json_node_count(array), max);
	*out = array;
	return 0;
}

void message_print_digest(
	struct json_writer *writer, const char *name, const struct digest128 *digest)
{
	char text[DIGEST128_TEXT_BYTES];
	digest128_format(digest, text);
	json_writer_text(writer, name, span_text(text));
}

void message_print_time(struct json_writer *writer, const char *name, int64_t wall_ms)
{
	char text[CLOCK_TEXT_BYTES];
	clock_format_iso(wall_ms, text);
	json_writer_text(writer, name, span_text(text));
}

static int bad_field(const char *name, const char *wanted, struct error *err)
{
	return error_set(err, ERROR_INVALID, "\"%s\" is missing or not %s.", name, wanted);
}

static bool is_safe_name(struct span name)
{
	struct span rest = name;
	struct span segment;
	for (size_t i = 0; i < name.len; i++)
		if (name.data[i] < 0x20 || name.data[i] == 0x7f)
			return false;
	while (span_split(&rest, '/', &segment))
		if (segment.len == 0 || span_equal_text(segment, ".") ||
			span_equal_text(segment, ".."))
			return false;
	return name.len > 0;
}
