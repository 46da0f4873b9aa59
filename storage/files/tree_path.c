#include "storage/files/tree_path.h"

#include "storage/versions/object.h"

static bool segment_is_shown(struct span segment);
static bool holds_dots(struct span segment);
static bool is_dots(struct span text);
static bool is_letter(uint8_t byte);

bool tree_path_is_shown(struct span path)
{
	struct span rest = path;
	for (ptrdiff_t slash = span_find(rest, '/'); slash >= 0; slash = span_find(rest, '/')) {
		if (!segment_is_shown(span_slice(rest, 0, (size_t)slash)))
			return false;
		rest = span_slice(rest, (size_t)slash + 1, rest.len);
	}
	return segment_is_shown(rest);
}

int tree_path_check(struct span path, struct error *err)
{
	if (path.len == 0)
		return error_set(err, ERROR_INVALID, "A path must not be empty.");
	if (path.len > OBJECT_KEY_MAX_BYTES)
		return error_set(err, ERROR_INVALID,
			"A path has %zu bytes; at most %d are allowed.", path.len,
			OBJECT_KEY_MAX_BYTES);
	if (!span_is_utf8(path) || span_find(path, '\0') >= 0)
		return error_set(err, ERROR_INVALID, "A path must be UTF-8 without NUL.");
	if (span_find(path, '\\') >= 0)
		return error_set(err, ERROR_INVALID, "A path must not contain a backslash.");
	if (span_ends_text(path, ".."))
		return error_set(err, ERROR_INVALID, "A path must not end with '..'.");
	if (!tree_path_is_shown(path))
		return error_set(err, ERROR_INVALID,
			"A path must not have an empty, '.' or '..' segment (so no '/' at its ends), nor a segment that begins with a drive letter and a colon.");
	return 0;
}

static bool segment_is_shown(struct span segment)
{
	if (segment.len == 0 || segment.data[0] == '\\' || holds_dots(segment))
		return false;
	return segment.len < 2 || segment.data[1] != ':' || !is_letter(segment.data[0]);
}

/* Clients that look for ".." also split names at backslashes. */
static bool holds_dots(struct span segment)
{
	struct span rest = segment;
	struct span piece;
	while (span_split(&rest, '\\', &piece))
		if (is_dots(piece))
			return true;
	return false;
}

static bool is_dots(struct span text)
{
	return span_equal_text(text, ".") || span_equal_text(text, "..");
}

static bool is_letter(uint8_t byte)
{
	return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
}
