/* A hidden control character is a grave accent and the character whose code is greater by 96: "`a"
 * for 1, "`z" for 26. A grave accent of the document, and a reference to one, becomes two, so that
 * a hidden text has one meaning. Bytes outside ASCII stay as they are, whatever the encoding. */
#include "api/s3/xml/xml_controls.h"

#include <string.h>

#include "base/buffer.h"

enum { MARK = '`', OFFSET = 96, NO_CODE = -1, CODE_MAX = 0x7f, REFERENCE_MAX_BYTES = 16 };

/* What has no references, up to its end. The last row matches every '<'. */
static const struct markup {
	const char *opening;
	const char *end;
	bool is_text;
} markups[] = {{"<![CDATA[", "]]>", true}, {"<!--", "-->", false}, {"<?", "?>", false},
	{"<", ">", false}};

static bool has_controls(struct span xml);
static void hide(struct span xml, struct buffer *out);
static size_t hide_markup(struct span rest, struct buffer *out);
static size_t hide_character(struct span rest, struct buffer *out);
static size_t find_end(struct span text, const char *end);
static int read_character(struct span rest, size_t *out_len);
static int append_digit(int code, uint8_t digit, int base);
static bool is_control(int code);

int xml_controls_hide(
	struct span xml, struct arena *arena, struct xml_controls *out, struct error *err)
{
	struct buffer hidden;
	*out = (struct xml_controls){.xml = xml};
	if (span_find(xml, 0) >= 0 || !has_controls(xml))
		return 0;
	buffer_init(&hidden, 2 * xml.len + 1);
	hide(xml, &hidden);
	const bool fits = !buffer_failed(&hidden);
	out->xml = fits ? arena_copy(arena, buffer_span(&hidden)) : (struct span){NULL, 0};
	buffer_release(&hidden);
	out->are_hidden = true;
	return out->xml.data != NULL
		? 0
		: error_set(err, ERROR_NO_MEMORY,
			  "The XML body does not fit the memory of a request.");
}

struct span xml_controls_show(
	const struct xml_controls *controls, struct span text, struct arena *arena)
{
	uint8_t *const shown = arena_take(arena, text.len + 1);
	size_t len = 0;
	for (size_t i = 0; shown != NULL && i < text.len; i++) {
		const uint8_t next = i + 1 < text.len ? text.data[i + 1] : 0;
		const bool is_hidden = controls->are_hidden && text.data[i] == MARK &&
			next >= MARK && next <= CODE_MAX;
		shown[len++] = !is_hidden || next == MARK ? text.data[i] : next - OFFSET;
		i += is_hidden;
	}
	return shown != NULL ? span_of(shown, len) : (struct span){NULL, 0};
}

static bool has_controls(struct span xml)
{
	size_t len;
	for (size_t i = 0; i < xml.len; i += len)
		if (is_control(read_character(span_slice(xml, i, xml.len), &len)))
			return true;
	return false;
}

static void hide(struct span xml, struct buffer *out)
{
	for (size_t i = 0; i < xml.len;) {
		const struct span rest = span_slice(xml, i, xml.len);
		i += rest.data[0] == '<' ? hide_markup(rest, out) : hide_character(rest, out);
	}
}

/* Returns the length, as below. An attribute may hold a '>': then its end counts as text, which
 * does no harm, because nobody reads attributes. */
static size_t hide_markup(struct span rest, struct buffer *out)
{
	const struct markup *markup = markups;
	while (!span_starts(rest, span_text(markup->opening)))
		markup++;
	const size_t opening = strlen(markup->opening);
	const size_t len =
		opening + find_end(span_slice(rest, opening, rest.len), markup->end);
	for (size_t i = 0; i < len; i++) {
		buffer_add_byte(out, rest.data[i]);
		if (markup->is_text && rest.data[i] == MARK)
			buffer_add_byte(out, MARK);
	}
	return len;
}

static size_t hide_character(struct span rest, struct buffer *out)
{
	size_t len;
	const int code = read_character(rest, &len);
	if (code == MARK)
		buffer_add_text(out, "``");
	else if (is_control(code))
		buffer_format(out, "%c%c", MARK, code + OFFSET);
	else
		buffer_add_span(out, span_slice(rest, 0, len));
	return len;
}

/* The length up to and with `end`; all when there is none. */
static size_t find_end(struct span text, const char *end)
{
	const size_t len = strlen(end);
	const uint8_t *const found = text.len > 0 ? memmem(text.data, text.len, end, len) : NULL;
	return found != NULL ? (size_t)(found - text.data) + len : text.len;
}

/* The character at the beginning, as a byte or as a reference, and its length. NO_CODE for what is
 * neither ASCII nor a reference to it. */
static int read_character(struct span rest, size_t *out_len)
{
	const bool is_hex = span_starts(rest, span_text("&#x"));
	const size_t digits = is_hex ? 3 : 2;
	int code = 0;
	*out_len = 1;
	if (!is_hex && !span_starts(rest, span_text("&#")))
		return rest.data[0] <= CODE_MAX ? rest.data[0] : NO_CODE;
	const ptrdiff_t end = span_find(span_slice(rest, 0, REFERENCE_MAX_BYTES), ';');
	for (size_t i = digits; end >= 0 && i < (size_t)end && code >= 0; i++)
		code = append_digit(code, rest.data[i], is_hex ? 16 : 10);
	if (end <= (ptrdiff_t)digits || code < 0)
		return NO_CODE;
	*out_len = (size_t)end + 1;
	return code;
}

/* NO_CODE after a character that is not a digit, and past CODE_MAX. */
static int append_digit(int code, uint8_t digit, int base)
{
	static const char digits[] = "0123456789abcdef";
	const int lower = digit >= 'A' && digit <= 'F' ? digit + 'a' - 'A' : digit;
	const char *const found = memchr(digits, lower, (size_t)base);
	const int next = found != NULL ? code * base + (int)(found - digits) : NO_CODE;
	return next <= CODE_MAX ? next : NO_CODE;
}

/* Those that XML has no place for. */
static bool is_control(int code)
{
	return code > 0 && code < ' ' && code != '\t' && code != '\n' && code != '\r';
}
