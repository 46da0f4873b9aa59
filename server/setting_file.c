/* Reads the file line by line, and passes each line name = value on with its heading. A value is
 * either plain, and ends before a comment, or quoted as a whole. Mixed forms are refused, so that
 * quotes and comments are what they look like. */
#include "server/setting_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buffer.h"
#include "base/memory.h"

enum { FROM_MAX_BYTES = 4200 };

struct reading {
	const char *path;
	FILE *file;
	const struct setting_taker *taker;
	char *heading;
	unsigned number;
	char from[FROM_MAX_BYTES];
};

static FILE *open_file(const char *path, struct error *err);
static int take_lines(struct reading *reading, struct error *err);
static int take_line(struct reading *reading, struct span text, struct error *err);
static bool begins_comment(struct span text);
static int take_heading(struct reading *reading, struct span text, struct error *err);
static char *copy_text(struct span text);
static int take_entry(struct reading *reading, struct span text, struct error *err);
static bool is_quote(uint8_t byte);
static char *take_quoted(struct span text, const char *from, struct error *err);
static char *take_plain(struct span text, const char *from, struct error *err);
static bool begins_comment_at(struct span text, size_t at);

int setting_file_read(const char *path, const struct setting_taker *taker, struct error *err)
{
	struct reading reading = {.path = path, .taker = taker};
	reading.file = open_file(path, err);
	if (reading.file == NULL)
		return -1;
	reading.heading = memory_copy_text("");
	const int outcome = take_lines(&reading, err);
	free(reading.heading);
	fclose(reading.file);
	return outcome;
}

/* A folder can be opened like a file but has no lines, so it is refused here. */
static FILE *open_file(const char *path, struct error *err)
{
	struct stat facts;
	FILE *const file = fopen(path, "re");
	if (file == NULL) {
		error_set_errno(err, "cannot read the configuration file %s", path);
		return NULL;
	}
	if (fstat(fileno(file), &facts) != 0 || !S_ISDIR(facts.st_mode))
		return file;
	fclose(file);
	error_set(err, ERROR_INVALID,
		"the configuration file %s is a folder; --config needs the path of a file", path);
	return NULL;
}

static int take_lines(struct reading *reading, struct error *err)
{
	char *line = NULL;
	size_t room = 0;
	ssize_t len;
	int outcome = 0;
	while (outcome == 0 && (len = getline(&line, &room, reading->file)) >= 0) {
		outcome = take_line(reading, span_of(line, (size_t)len), err);
		if (outcome != 0 && reading->taker->note != NULL) {
			reading->taker->note(reading->taker->owner, err);
			*err = (struct error){0};
			outcome = 0;
		}
	}
	if (outcome == 0 && ferror(reading->file))
		outcome = error_set_errno(
			err, "cannot read the configuration file %s", reading->path);
	free(line);
	return outcome;
}

static int take_line(struct reading *reading, struct span text, struct error *err)
{
	static const char MARK[] = "\xef\xbb\xbf"; /* some editors begin UTF-8 files with it */
	snprintf(reading->from, sizeof(reading->from), "%s:%u", reading->path, ++reading->number);
	if (span_find(text, '\0') >= 0)
		return error_set(
			err, ERROR_INVALID, "%s: the line contains a zero byte", reading->from);
	if (reading->number == 1 && span_starts(text, span_text(MARK)))
		text = span_slice(text, sizeof(MARK) - 1, text.len);
	while (text.len > 0 && (text.data[text.len - 1] == '\n' || text.data[text.len - 1] == '\r'))
		text.len--;
	text = span_trim(text);
	if (text.len == 0 || begins_comment(text))
		return 0;
	return (text.data[0] == '[' ? take_heading : take_entry)(reading, text, err);
}

static bool begins_comment(struct span text)
{
	return text.len > 0 && (text.data[0] == '#' || text.data[0] == ';');
}

static int take_heading(struct reading *reading, struct span text, struct error *err)
{
	ASSERT(text.len > 0 && text.data[0] == '[');
	const ptrdiff_t end = span_find(text, ']');
	const struct span rest = span_trim(span_slice(text, (size_t)end + 1, text.len));
	if (end < 0 || (rest.len > 0 && !begins_comment(rest)))
		return error_set(err, ERROR_INVALID,
			"%s: a heading must be [name], alone in its line", reading->from);
	free(reading->heading);
	reading->heading = copy_text(span_trim(span_slice(text, 1, (size_t)end - 1)));
	return 0;
}

static char *copy_text(struct span text)
{
	char *const copy = memory_new(text.len + 1);
	memcpy(copy, text.data, text.len);
	return copy;
}

static int take_entry(struct reading *reading, struct span text, struct error *err)
{
	size_t sign = 0;
	while (sign < text.len && text.data[sign] != '=' && text.data[sign] != ':')
		sign++;
	const struct span name = span_trim(span_slice(text, 0, sign));
	if (sign == text.len || name.len == 0)
		return error_set(err, ERROR_INVALID,
			"%s: this is neither a setting (name = value) nor a heading ([name])",
			reading->from);
	const struct span right = span_trim(span_slice(text, sign + 1, text.len));
	const bool is_quoted = right.len > 0 && is_quote(right.data[0]);
	char *const value = (is_quoted ? take_quoted : take_plain)(right, reading->from, err);
	if (value == NULL)
		return -1;
	char *const name_text = copy_text(name);
	const struct setting_line line = {reading->heading, name_text, value, reading->from};
	const int taken = reading->taker->take(reading->taker->owner, &line, err);
	free(name_text);
	free(value);
	return taken;
}

static bool is_quote(uint8_t byte)
{
	return byte == '"' || byte == '\'';
}

/* Two quotation marks of the enclosing kind stand for one. */
static char *take_quoted(struct span text, const char *from, struct error *err)
{
	ASSERT(text.len > 0 && is_quote(text.data[0]));
	const char quote = (char)text.data[0];
	const struct span mark = span_slice(text, 0, 1);
	char *const value = memory_new(text.len);
	size_t len = 0;
	size_t at = 1;
	bool is_closed = false;
	for (; at < text.len && !is_closed; at++) {
		const bool is_mark = text.data[at] == quote;
		const bool is_double = is_mark && span_starts(span_slice(text, at + 1, 1), mark);
		is_closed = is_mark && !is_double;
		at += is_double;
		if (!is_closed)
			value[len++] = (char)text.data[at];
	}
	const struct span rest = span_trim(span_slice(text, at, text.len));
	if (is_closed && (rest.len == 0 || begins_comment(rest)))
		return value;
	free(value);
	error_set(err, ERROR_INVALID,
		is_closed
			? "%s: the value continues after its closing quotation mark (%c); one pair "
			  "must enclose all of it, and %c%c inside stands for one mark"
			: "%s: the value begins with a quotation mark (%c) and does not end with one",
		from, quote, quote, quote);
	return NULL;
}

static char *take_plain(struct span text, const char *from, struct error *err)
{
	size_t end = 0;
	while (end < text.len && !begins_comment_at(text, end))
		end++;
	const struct span value = span_trim(span_slice(text, 0, end));
	if (value.len == 0 || !is_quote(value.data[value.len - 1]))
		return copy_text(value);
	error_set(err, ERROR_INVALID,
		"%s: the value ends with a quotation mark (%c) and does not begin with one", from,
		value.data[value.len - 1]);
	return NULL;
}

static bool begins_comment_at(struct span text, size_t at)
{
	const bool is_behind_blank =
		at == 0 || text.data[at - 1] == ' ' || text.data[at - 1] == '\t';
	return is_behind_blank && begins_comment(span_slice(text, at, 1));
}
