#include "client/work/output.h"

#include <stdarg.h>
#include <stdio.h>

enum { LINE_MAX_BYTES = 64 * 1024 * 1024, TOLD_MAX_BYTES = 4096 };

static void put_sentence(struct output *output, const char *format, va_list arguments)
	__attribute__((format(printf, 2, 0)));
static void put_aside(const struct output *output, const char *format, va_list arguments)
	__attribute__((format(printf, 2, 0)));
static void tell(const struct output *output, bool is_warning, const char *format,
	va_list arguments) __attribute__((format(printf, 3, 0)));
static void put_line(struct output *output, struct span text);

void output_line_begin(struct output_line *line, struct output *output, const char *event)
{
	line->output = output;
	buffer_init(&line->text, LINE_MAX_BYTES);
	json_writer_init(&line->writer, &line->text);
	json_writer_object(&line->writer, NULL);
	if (event != NULL)
		json_writer_text(&line->writer, "event", span_text(event));
}

void output_line_end(struct output_line *line)
{
	json_writer_end(&line->writer, '}');
	if (line->output->json && !buffer_failed(&line->text))
		put_line(line->output, buffer_span(&line->text));
	buffer_release(&line->text);
}

void output_object(struct output *output, const struct json_node *object)
{
	struct buffer text;
	if (!output->json)
		return;
	buffer_init(&text, LINE_MAX_BYTES);
	json_node_print(object, &text);
	if (!buffer_failed(&text))
		put_line(output, buffer_span(&text));
	buffer_release(&text);
}

void output_result(struct output *output, const char *format, ...)
{
	va_list arguments;
	if (output->json)
		return;
	va_start(arguments, format);
	put_sentence(output, format, arguments);
	va_end(arguments);
}

void output_say(struct output *output, const char *format, ...)
{
	va_list arguments;
	if (output->json || output->quiet)
		return;
	va_start(arguments, format);
	put_sentence(output, format, arguments);
	va_end(arguments);
}

void output_note(const struct output *output, const char *format, ...)
{
	va_list arguments;
	if (output->quiet)
		return;
	va_start(arguments, format);
	put_aside(output, format, arguments);
	va_end(arguments);
}

void output_failure(const struct output *output, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	put_aside(output, format, arguments);
	va_end(arguments);
}

void output_error(struct output *output, const struct error *err)
{
	fprintf(stderr, "deltabucket: %s\n", err->text);
	struct output_line line;
	output_line_begin(&line, output, NULL);
	json_writer_object(&line.writer, "error");
	json_writer_text(&line.writer, "code", span_text(error_kind_name(err->kind)));
	json_writer_text(&line.writer, "message", span_text(err->text));
	if (err->request_id[0] != '\0')
		json_writer_text(&line.writer, "request_id", span_text(err->request_id));
	json_writer_end(&line.writer, '}');
	output_line_end(&line);
}

void output_clean(char *text)
{
	for (unsigned char *at = (unsigned char *)text; *at != '\0'; at++) {
		const bool is_c1 = at[0] == 0xC2 && at[1] >= 0x80 && at[1] < 0xA0;
		if (is_c1)
			*at++ = '?';
		if (is_c1 || *at < ' ' || *at == 0x7F)
			*at = '?';
	}
}

static void put_sentence(struct output *output, const char *format, va_list arguments)
{
	if (output->told != NULL) {
		tell(output, false, format, arguments);
		return;
	}
	vprintf(format, arguments);
	putchar('\n');
	if (fflush(stdout) != 0)
		output->failed = true;
}

static void put_aside(const struct output *output, const char *format, va_list arguments)
{
	if (output->told != NULL) {
		tell(output, true, format, arguments);
		return;
	}
	flockfile(stderr);
	fputs("deltabucket: ", stderr);
	vfprintf(stderr, format, arguments);
	putc_unlocked('\n', stderr);
	funlockfile(stderr);
}

static void tell(
	const struct output *output, bool is_warning, const char *format, va_list arguments)
{
	char sentence[TOLD_MAX_BYTES];
	vsnprintf(sentence, sizeof(sentence), format, arguments);
	output->told(output->owner, sentence, is_warning);
}

static void put_line(struct output *output, struct span text)
{
	flockfile(stdout);
	fwrite(text.data, 1, text.len, stdout);
	putc_unlocked('\n', stdout);
	if (fflush(stdout) != 0)
		output->failed = true;
	funlockfile(stdout);
}
