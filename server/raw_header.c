#include "server/raw_header.h"

#include <string.h>

static const char apart[] =
	"each line of a request must end with CR LF, hold no NUL, and not be folded";

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
		refuse(raw, "a method may not hold control characters");
	if (!is_word(target))
		refuse(raw, "blanks and control characters in a target must be percent-encoded");
	step(raw, method_len);
	if (is_blank(byte_at(raw, raw->at)))
		refuse(raw, apart); /* more than one in front of the target */
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
		refuse(raw, "the name of a header holds characters that no name may hold");
	if (!is_value(value))
		refuse(raw, "the value of a header may not hold control characters");
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
	const char *const rest = raw->text + raw->at;
	if (raw->fault == NULL &&
		(raw->len - raw->at != 2 ||
			(memcmp(rest, "\0", 2) != 0 && memcmp(rest, "\r\n", 2) != 0)))
		refuse(raw, apart);
	if (raw->hosts > 1 || (raw->hosts == 0 && !raw->is_1_0))
		refuse(raw, "a request must have one Host header");
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

/* Steps over the bytes up to `len` further on, of which the library says what they are, and over
 * the NUL that it put behind them. */
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
	return at < raw->len ? raw->text[at] : 'x'; /* what ends nothing */
}

static void step_version(struct raw_header *raw)
{
	static const char known[] = "HTTP/1.";
	const size_t len = sizeof known; /* with the last digit */
	if (raw->at >= raw->len || len >= raw->len - raw->at ||
		memcmp(raw->text + raw->at, known, len - 1) != 0) {
		refuse(raw, apart);
		return;
	}
	raw->is_1_0 = raw->text[raw->at + len - 1] == '0';
	step(raw, len);
	step_line_end(raw);
}

/* What is left of a line's end behind the first NUL: another one of 0.9, up to a line feed of 1.0,
 * blanks before it. */
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
