#include "client/doctor/checkup.h"

#include <stdarg.h>
#include <stdio.h>

enum { TEXT_BYTES = 1024 };

enum check_state { CHECK_OK, CHECK_WARNING, CHECK_PROBLEM };

static const struct {
	const char *name;
	const char *colour; /* of a terminal */
} STATES[] = {{"ok", "32"}, {"warning", "33"}, {"problem", "31"}};

struct check {
	enum check_state state;
	const char *name;
	const char *text;
	const char *advice; /* may be NULL */
};

static void say(struct checkup *checkup, const struct check *check);
static void say_text(struct checkup *checkup, const struct check *check);

void checkup_ok(struct checkup *checkup, const char *name, const char *format, ...)
{
	char text[TEXT_BYTES];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	checkup->well++;
	say(checkup, &(struct check){CHECK_OK, name, text, NULL});
}

void checkup_warn(
	struct checkup *checkup, const char *name, const char *advice, const char *format, ...)
{
	char text[TEXT_BYTES];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	checkup->warnings++;
	say(checkup, &(struct check){CHECK_WARNING, name, text, advice});
}

void checkup_fail(
	struct checkup *checkup, const char *name, const char *advice, const struct error *why)
{
	ASSERT(why->kind != ERROR_NONE);
	if (checkup->problems++ == 0)
		checkup->first = *why;
	say(checkup, &(struct check){CHECK_PROBLEM, name, why->text, advice});
}

int checkup_end(struct checkup *checkup, struct error *err)
{
	struct output_line line;
	output_line_begin(&line, checkup->output, "checked");
	json_writer_u64(&line.writer, "ok", checkup->well);
	json_writer_u64(&line.writer, "warnings", checkup->warnings);
	json_writer_u64(&line.writer, "problems", checkup->problems);
	output_line_end(&line);
	if (checkup->problems == 0)
		return 0;
	*err = checkup->first;
	return error_wrap(err, "%zu problem%s, the first", checkup->problems,
		checkup->problems == 1 ? "" : "s");
}

static void say(struct checkup *checkup, const struct check *check)
{
	struct output_line line;
	output_line_begin(&line, checkup->output, "check");
	json_writer_text(&line.writer, "name", span_text(check->name));
	json_writer_text(&line.writer, "state", span_text(STATES[check->state].name));
	json_writer_text(&line.writer, "message", span_text(check->text));
	if (check->advice != NULL)
		json_writer_text(&line.writer, "advice", span_text(check->advice));
	output_line_end(&line);
	say_text(checkup, check);
}

static void say_text(struct checkup *checkup, const struct check *check)
{
	const bool colours = checkup->colours;
	char text[TEXT_BYTES];
	char advice[TEXT_BYTES];
	snprintf(text, sizeof(text), "%s", check->text);
	snprintf(advice, sizeof(advice), "%s", check->advice != NULL ? check->advice : "");
	output_clean(text);
	output_clean(advice);
	output_result(checkup->output, "%s%s%s%-7s%s  %-11s  %s", colours ? "\033[" : "",
		colours ? STATES[check->state].colour : "", colours ? "m" : "",
		STATES[check->state].name, colours ? "\033[m" : "", check->name, text);
	if (advice[0] != '\0')
		output_result(checkup->output, "%-7s  %-11s  -> %s", "", "", advice);
}
