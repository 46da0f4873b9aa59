#include "base/columns.h"

#include <string.h>

enum { INDENT = 2, GAP = 2 };

static void add_spaces(struct buffer *out, size_t count);

size_t columns_widen(size_t width, const char *left)
{
	const size_t len = strlen(left);
	return len > COLUMNS_LEFT_MAX_BYTES || len < width ? width : len;
}

void columns_add(struct buffer *out, const char *left, size_t width, const char *right)
{
	ASSERT(width <= COLUMNS_LEFT_MAX_BYTES);
	const size_t from = INDENT + width + GAP;
	size_t at = INDENT + strlen(left);
	struct span rest = span_text(right);
	struct span word;
	add_spaces(out, INDENT);
	buffer_add_text(out, left);
	if (at + GAP > from) {
		buffer_add_byte(out, '\n');
		at = 0;
	}
	for (bool first = true; span_split(&rest, ' ', &word); first = false) {
		if (!first && at + 1 + word.len > COLUMNS_LINE_BYTES) {
			buffer_add_byte(out, '\n');
			at = 0;
		}
		add_spaces(out, at < from ? from - at : 1);
		buffer_add_span(out, word);
		at = (at < from ? from : at + 1) + word.len;
	}
	buffer_add_byte(out, '\n');
}

static void add_spaces(struct buffer *out, size_t count)
{
	for (size_t i = 0; i < count; i++)
		buffer_add_byte(out, ' ');
}
