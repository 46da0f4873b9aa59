/* `at` moves over the head, one piece at a time: method, target and version, then each header, then
 * the empty line. Each piece must end where the library's text for it ends. The first fault stays
 * and stops the walk, so that later steps cannot hide it. */
#include "server/raw_header.h"

#include <string.h>

#include "base/error.h"

static const char apart[] =
	"Each line of a request must end with CR LF, contain no NUL, and not be folded.";

static bool is_name(struct span text);
static bool is_word(struct span text);
static void refuse(struct raw_header *raw, const char *fault);
static void step(struct raw_header *raw, size_t len);
static bool is_blank(char byte);
static char byte_at(const struct raw_header *raw, size_t at);
static void step_version(struct raw_header *raw);
static void step_line_end(struct raw_header *raw);
static bool is_value(struct span text);

void raw_header_begin(struct raw_header *raw, const char *method, struct span target, size_t len)
{
	const size_t method_len = strlen(method);
	*raw = (struct raw_header){.text = method, .len = len};
	if (!is_name(span_of(method, method_len)))
		refuse(raw, "The method must not contain control characters.");
	if (!is_word(target))
		refuse(raw, "Blanks and control characters in the target must be percent-encoded.");
	step(raw, method_len);
	if (is_blank(byte_at(raw, raw->at)))
		refuse(raw, apart); /* more than one blank before the target */
	step(raw, target.len);
	if (raw->fault == NULL)
		step_version(raw);
}

void raw_header_take(struct raw_header *raw, struct span name, struct span value)
{
	raw->count++;
	raw->bytes += name.len + value.len + 4;
	raw->hosts += span_equal_nocase(name, "host");
	if (!is_name(name))
		refuse(raw, "The name of a header has a character that is not allowed.");
	if (!is_value(value))
		refuse(raw, "The value of a header must not contain control characters.");
	if (raw->fault != NULL)
		return;
	if ((const char *)name.data != raw->text + raw->at)
		refuse(raw, apart);
	step(raw, name.len);
	while (is_blank(byte_at(raw, raw->at)))
		raw->at++;
	if ((const char *)value.data != raw->text + raw->at)
		refuse(raw, apart);
	step(raw, value.len);
	step_line_end(raw);
}

void raw_header_end(struct raw_header *raw)
{
	ASSERT(raw->at <= raw->len);
	const char *const rest = raw->text + raw->at;
	if (raw->fault == NULL &&
		(raw->len - raw->at != 2 ||
			(memcmp(rest, "\0", 2) != 0 && memcmp(rest, "\r\n", 2) != 0)))
		refuse(raw, apart);
	if (raw->hosts > 1 || (raw->hosts == 0 && !raw->is_1_0))
		refuse(raw, "A request must have exactly one Host header.");
}

static bool is_name(struct span text)
{
	for (size_t i = 0; i < text.len; i++)
		if (text.data[i] >= 0x7f)
			return false;
	return is_word(text);
}

static bool is_word(struct span text)
{
	for (size_t i = 0; i < text.len; i++)
		if (text.data[i] <= ' ' || text.data[i] == 0x7f)
			return false;
	return text.len > 0;
}

static void refuse(struct raw_header *raw, const char *fault)
{
	if (raw->fault == NULL)
		raw->fault = fault;
}

/* Steps over `len` bytes that the library has named, and over the NUL that it put after them. */
static void step(struct raw_header *raw, size_t len)
{
	if (raw->at >= raw->len || len >= raw->len - raw->at || raw->text[raw->at + len] != '\0')
		refuse(raw, apart);
	else
		raw->at += len + 1;
}

static bool is_blank(char byte)
{
	return byte == ' ' || byte == '\t';
}

static char byte_at(const struct raw_header *raw, size_t at)
{
	return at < raw->len ? raw->text[at] : 'x'; /* a byte that ends nothing */
}

static void step_version(struct raw_header *raw)
{
	static const char known[] = "HTTP/1.";
	const size_t len = sizeof(known); /* with the last digit */
	if (raw->at >= raw->len || len >= raw->len - raw->at ||
		memcmp(raw->text + raw->at, known, len - 1) != 0) {
		refuse(raw, apart);
		return;
	}
	raw->is_1_0 = raw->text[raw->at + len - 1] == '0';
	step(raw, len);
	step_line_end(raw);
}

/* Steps over the rest of a line's end after the first NUL: blanks, then another NUL (0.9) or the
 * line feed (1.0). */
static void step_line_end(struct raw_header *raw)
{
	size_t at = raw->at;
	while (is_blank(byte_at(raw, at)))
		at++;
	at += byte_at(raw, at) == '\r';
	if (byte_at(raw, at) == '\n')
		raw->at = at + 1;
	else
		step(raw, 0);
}

static bool is_value(struct span text)
{
	for (size_t i = 0; i < text.len; i++)
		if ((text.data[i] < ' ' && text.data[i] != '\t') || text.data[i] == 0x7f)
			return false;
	return true;
}
