/* A scan is a position in the text and the first fault. All functions return false once there is a
 * fault, so callers may chain them and look at the fault at the end. Skipping keeps the closing
 * brackets in an array of its own, so nesting costs no stack and has a limit. */
#include "weights/model/json_scan.h"

#include <string.h>

#include "base/encode.h"

enum { DEPTH_MAX = 128 };

static const char escape_letters[] = "\"\\/bfnrt";
static const char escape_values[] = "\"\\/\b\f\n\r\t";

static void skip_space(struct json_scan *scan);
static bool accept_word(struct json_scan *scan, const char *word);
static void plain_run(struct json_scan *scan, struct buffer *strings);
static bool escape(struct json_scan *scan, struct buffer *strings);
static bool unicode_escape(struct json_scan *scan, struct buffer *strings);
static bool hex4(struct json_scan *scan, unsigned *out_unit);
static void add_utf8(struct buffer *out, unsigned code);
static size_t digits(struct json_scan *scan);
static bool open_container(struct json_scan *scan, char *closers, unsigned *depth, bool *out_empty);
static bool skip_string(struct json_scan *scan);
static bool skip_scalar(struct json_scan *scan);
static bool skip_number(struct json_scan *scan);
static bool take_one_of(struct json_scan *scan, const char *bytes);
static bool step_to_next(struct json_scan *scan, const char *closers, unsigned *depth);
static bool take_member(struct json_scan *scan, const struct json_scan_object *object,
	struct buffer *strings, void *state, unsigned *seen);
static void quote_byte(uint8_t byte, struct buffer *out);

void json_scan_init(struct json_scan *scan, struct span text)
{
	/* An empty file has no address, and C does not allow arithmetic on NULL. */
	const uint8_t *const begin = text.data != NULL ? text.data : (const uint8_t *)"";
	*scan = (struct json_scan){.begin = begin, .at = begin, .end = begin + text.len};
}

size_t json_scan_offset(const struct json_scan *scan)
{
	return (size_t)(scan->at - scan->begin);
}

bool json_scan_fail(struct json_scan *scan, const char *fault)
{
	if (scan->fault == NULL)
		scan->fault = fault;
	return false;
}

bool json_scan_accept(struct json_scan *scan, char byte)
{
	skip_space(scan);
	if (scan->fault != NULL || scan->at == scan->end || *scan->at != (uint8_t)byte)
		return false;
	scan->at++;
	return true;
}

bool json_scan_expect(struct json_scan *scan, char byte)
{
	return json_scan_accept(scan, byte) || json_scan_fail(scan, "unexpected character");
}

bool json_scan_at_string(struct json_scan *scan)
{
	skip_space(scan);
	return scan->at < scan->end && *scan->at == '"';
}

bool json_scan_accept_null(struct json_scan *scan)
{
	skip_space(scan);
	return scan->fault == NULL && accept_word(scan, "null");
}

bool json_scan_next(struct json_scan *scan, char close, bool *first)
{
	if (*first && json_scan_accept(scan, close))
		return false;
	if (!*first) {
		if (json_scan_accept(scan, close))
			return false;
		if (!json_scan_expect(scan, ','))
			return false;
	}
	*first = false;
	return scan->fault == NULL;
}

bool json_scan_string(struct json_scan *scan, struct buffer *strings, struct span *out_text)
{
	if (!json_scan_accept(scan, '"'))
		return json_scan_fail(scan, "a string is expected");
	const size_t from = strings->len;
	for (;;) {
		plain_run(scan, strings);
		if (scan->at == scan->end)
			return json_scan_fail(scan, "unfinished string");
		const uint8_t byte = *scan->at++;
		if (byte == '"')
			break;
		if (byte != '\\')
			return json_scan_fail(scan, "control character in a string");
		if (!escape(scan, strings))
			return false;
	}
	ASSERT(!buffer_failed(strings));
	*out_text = span_slice(buffer_span(strings), from, strings->len - from);
	return true;
}

bool json_scan_name(struct json_scan *scan, struct buffer *strings, struct span *out_name)
{
	return json_scan_string(scan, strings, out_name) && json_scan_expect(scan, ':');
}

bool json_scan_u64(struct json_scan *scan, uint64_t *out_value)
{
	skip_space(scan);
	const uint8_t *const from = scan->at;
	while (scan->at < scan->end && *scan->at >= '0' && *scan->at <= '9')
		scan->at++;
	const struct span digits = span_of(from, (size_t)(scan->at - from));
	const bool leading_zero = digits.len > 1 && digits.data[0] == '0';
	const bool fraction =
		scan->at < scan->end && (*scan->at == '.' || *scan->at == 'e' || *scan->at == 'E');
	if (scan->fault != NULL || digits.len == 0 || leading_zero || fraction ||
		!span_parse_u64(digits, out_value))
		return json_scan_fail(scan, "a whole number from 0 to 2^64-1 is expected");
	return true;
}

bool json_scan_skip(struct json_scan *scan)
{
	char closers[DEPTH_MAX];
	unsigned depth = 0;
	do {
		bool empty = false;
		while (open_container(scan, closers, &depth, &empty) && !empty)
			continue;
		if (scan->fault != NULL || (!empty && !skip_scalar(scan)))
			return false;
	} while (step_to_next(scan, closers, &depth));
	return scan->fault == NULL;
}

bool json_scan_pairs(struct json_scan *scan, struct buffer *strings, struct buffer *pairs)
{
	if (!json_scan_expect(scan, '{'))
		return false;
	bool first = true;
	while (json_scan_next(scan, '}', &first)) {
		struct json_scan_pair pair;
		if (!json_scan_name(scan, strings, &pair.key) ||
			!json_scan_string(scan, strings, &pair.value))
			return false;
		buffer_add(pairs, &pair, sizeof(pair));
	}
	return scan->fault == NULL;
}

bool json_scan_members(struct json_scan *scan, const struct json_scan_object *object,
	struct buffer *strings, void *state)
{
	unsigned seen = 0;
	bool first = true;
	ASSERT(object->count <= 32);
	if (!json_scan_expect(scan, '{'))
		return false;
	while (json_scan_next(scan, '}', &first))
		if (!take_member(scan, object, strings, state, &seen))
			return false;
	for (size_t i = 0; i < object->count && scan->fault == NULL; i++)
		if (object->members[i].is_needed && (seen & 1u << i) == 0)
			return json_scan_fail(scan, object->missing);
	return scan->fault == NULL;
}

bool json_scan_done(struct json_scan *scan)
{
	skip_space(scan);
	return scan->fault == NULL && scan->at == scan->end;
}

void json_scan_quote(struct span text, struct buffer *out)
{
	buffer_add_byte(out, '"');
	size_t from = 0;
	for (size_t i = 0; i < text.len; i++) {
		const uint8_t byte = text.data[i];
		if (byte >= 0x20 && byte != '"' && byte != '\\')
			continue;
		buffer_add(out, text.data + from, i - from);
		quote_byte(byte, out);
		from = i + 1;
	}
	buffer_add(out, text.data + from, text.len - from);
	buffer_add_byte(out, '"');
}

static void skip_space(struct json_scan *scan)
{
	while (scan->at < scan->end &&
		(*scan->at == ' ' || *scan->at == '\t' || *scan->at == '\n' || *scan->at == '\r'))
		scan->at++;
}

static bool accept_word(struct json_scan *scan, const char *word)
{
	const size_t len = strlen(word);
	if ((size_t)(scan->end - scan->at) < len || memcmp(scan->at, word, len) != 0)
		return false;
	scan->at += len;
	return true;
}

/* Adds the plain characters at `at`. Stops at a quote, an escape, a control character or the end
 * of the text. */
static void plain_run(struct json_scan *scan, struct buffer *strings)
{
	const uint8_t *const from = scan->at;
	while (scan->at < scan->end && *scan->at != '"' && *scan->at != '\\' && *scan->at >= 0x20)
		scan->at++;
	buffer_add(strings, from, (size_t)(scan->at - from));
}

static bool escape(struct json_scan *scan, struct buffer *strings)
{
	if (scan->at == scan->end)
		return json_scan_fail(scan, "unfinished string");
	const uint8_t letter = *scan->at++;
	if (letter == 'u')
		return unicode_escape(scan, strings);
	const char *const found = letter == 0 ? NULL : strchr(escape_letters, letter);
	if (found == NULL)
		return json_scan_fail(scan, "unknown escape");
	buffer_add_byte(strings, (uint8_t)escape_values[found - escape_letters]);
	return true;
}

static bool unicode_escape(struct json_scan *scan, struct buffer *strings)
{
	unsigned code = 0;
	if (!hex4(scan, &code))
		return false;
	if (code >= 0xdc00 && code <= 0xdfff)
		return json_scan_fail(scan, "lone surrogate");
	if (code >= 0xd800 && code <= 0xdbff) {
		unsigned low = 0;
		if (!accept_word(scan, "\\u") || !hex4(scan, &low) || low < 0xdc00 || low > 0xdfff)
			return json_scan_fail(scan, "lone surrogate");
		code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
	}
	add_utf8(strings, code);
	return true;
}

static bool hex4(struct json_scan *scan, unsigned *out_unit)
{
	uint8_t bytes[2];
	if (scan->end - scan->at < 4 || !decode_hex(span_of(scan->at, 4), bytes, sizeof(bytes)))
		return json_scan_fail(scan, "malformed \\u escape");
	scan->at += 4;
	*out_unit = (unsigned)bytes[0] << 8 | bytes[1];
	return true;
}

static void add_utf8(struct buffer *out, unsigned code)
{
	if (code < 0x80) {
		buffer_add_byte(out, (uint8_t)code);
	} else if (code < 0x800) {
		buffer_add_byte(out, (uint8_t)(0xc0 | code >> 6));
		buffer_add_byte(out, (uint8_t)(0x80 | (code & 0x3f)));
	} else if (code < 0x10000) {
		buffer_add_byte(out, (uint8_t)(0xe0 | code >> 12));
		buffer_add_byte(out, (uint8_t)(0x80 | (code >> 6 & 0x3f)));
		buffer_add_byte(out, (uint8_t)(0x80 | (code & 0x3f)));
	} else {
		buffer_add_byte(out, (uint8_t)(0xf0 | code >> 18));
		buffer_add_byte(out, (uint8_t)(0x80 | (code >> 12 & 0x3f)));
		buffer_add_byte(out, (uint8_t)(0x80 | (code >> 6 & 0x3f)));
		buffer_add_byte(out, (uint8_t)(0x80 | (code & 0x3f)));
	}
}

static size_t digits(struct json_scan *scan)
{
	const uint8_t *const from = scan->at;
	while (scan->at < scan->end && *scan->at >= '0' && *scan->at <= '9')
		scan->at++;
	return (size_t)(scan->at - from);
}

/* Takes an opening bracket and, in an object, the name before the first value. *out_empty says that
 * the container closes at once. */
static bool open_container(struct json_scan *scan, char *closers, unsigned *depth, bool *out_empty)
{
	const bool object = json_scan_accept(scan, '{');
	if (!object && !json_scan_accept(scan, '['))
		return false;
	if (*depth == DEPTH_MAX)
		return json_scan_fail(scan, "nested too deep");
	const char close = object ? '}' : ']';
	*out_empty = json_scan_accept(scan, close);
	if (*out_empty)
		return true;
	closers[(*depth)++] = close;
	return !object || (skip_string(scan) && json_scan_expect(scan, ':'));
}

static bool skip_string(struct json_scan *scan)
{
	struct buffer text;
	buffer_init(&text, (size_t)(scan->end - scan->at) + 1);
	struct span unused;
	const bool taken = json_scan_string(scan, &text, &unused);
	buffer_release(&text);
	return taken;
}

static bool skip_scalar(struct json_scan *scan)
{
	skip_space(scan);
	if (scan->at < scan->end && *scan->at == '"')
		return skip_string(scan);
	if (accept_word(scan, "true") || accept_word(scan, "false") || accept_word(scan, "null"))
		return true;
	return skip_number(scan);
}

static bool skip_number(struct json_scan *scan)
{
	take_one_of(scan, "-");
	const bool zero = scan->at < scan->end && *scan->at == '0';
	const size_t whole = digits(scan);
	if (whole == 0 || (zero && whole > 1))
		return json_scan_fail(scan, "a value is expected");
	if (take_one_of(scan, ".") && digits(scan) == 0)
		return json_scan_fail(scan, "malformed number");
	if (take_one_of(scan, "eE")) {
		take_one_of(scan, "+-");
		if (digits(scan) == 0)
			return json_scan_fail(scan, "malformed number");
	}
	return true;
}

static bool take_one_of(struct json_scan *scan, const char *bytes)
{
	if (scan->at == scan->end || *scan->at == 0 || strchr(bytes, *scan->at) == NULL)
		return false;
	scan->at++;
	return true;
}

/* Goes on behind a whole value: closes the containers that end here and stops before the next
 * value. False at the end of the outermost value, without a fault, or at a fault. */
static bool step_to_next(struct json_scan *scan, const char *closers, unsigned *depth)
{
	while (*depth > 0) {
		const char close = closers[*depth - 1];
		if (json_scan_accept(scan, close)) {
			--*depth;
			continue;
		}
		if (!json_scan_expect(scan, ','))
			return false;
		return close == ']' || (skip_string(scan) && json_scan_expect(scan, ':'));
	}
	return false;
}

static bool take_member(struct json_scan *scan, const struct json_scan_object *object,
	struct buffer *strings, void *state, unsigned *seen)
{
	struct span name;
	if (!json_scan_name(scan, strings, &name))
		return false;
	for (size_t i = 0; i < object->count; i++) {
		if (!span_equal_text(name, object->members[i].name))
			continue;
		if ((*seen & 1u << i) != 0)
			return json_scan_fail(scan, "a member is given twice");
		*seen |= 1u << i;
		return object->members[i].scan(scan, state);
	}
	return json_scan_skip(scan);
}

static void quote_byte(uint8_t byte, struct buffer *out)
{
	static const char letters[] = "\"\\bfnrt";
	static const char values[] = "\"\\\b\f\n\r\t";
	const char *const found = byte == 0 ? NULL : strchr(values, byte);
	if (found == NULL) {
		buffer_format(out, "\\u%04x", byte);
		return;
	}
	buffer_add_byte(out, '\\');
	buffer_add_byte(out, (uint8_t)letters[found - values]);
}
