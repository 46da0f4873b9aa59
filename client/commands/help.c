#include "client/commands/help.h"

#include <stdio.h>

#include "base/columns.h"
#include "client/terminal/exit_code.h"

enum { CODE_WIDTH = 3 };

static void print_codes(struct buffer *out);
static void print_examples(const char *examples, struct buffer *out);

void help_print_overview(struct buffer *out)
{
	size_t count;
	const struct command *const commands = command_table(&count);
	size_t width = 0;
	for (size_t i = 0; i < count; i++)
		width = columns_widen(width, commands[i].name);
	buffer_add_text(out, "usage: deltabucket COMMAND [FLAGS] [ARGUMENTS]\n\n");
	for (size_t i = 0; i < count; i++)
		columns_add(out, commands[i].name, width, commands[i].summary);
	columns_add(out, "help", width,
		"this text; `deltabucket help COMMAND`: the arguments, flags and examples of a command");
	buffer_add_text(out,
		"\nThe server comes from --endpoint, --token and --ca, else from "
		"DELTABUCKET_ENDPOINT, DELTABUCKET_TOKEN\n"
		"and DELTABUCKET_CA, else from what `deltabucket login` stored in "
		"~/.config/deltabucket/config.\n");
	print_codes(out);
}

void help_print_command(const struct command *command, struct buffer *out)
{
	const char *const gap = command->arguments[0] != '\0' ? " " : "";
	buffer_format(out, "usage: deltabucket %s [FLAGS]%s%s\n\n%s\n", command->name, gap,
		command->arguments, command->summary);
	print_examples(command->examples, out);
	options_print_help(command->bit, out);
}

static void print_codes(struct buffer *out)
{
	size_t count;
	const struct exit_code_row *const codes = exit_code_rows(&count);
	char code[16];
	buffer_add_text(out, "\nexit codes:\n");
	for (size_t i = 0; i < count; i++) {
		snprintf(code, sizeof(code), "%*d", CODE_WIDTH, codes[i].code);
		columns_add(out, code, CODE_WIDTH, codes[i].meaning);
	}
}

static void print_examples(const char *examples, struct buffer *out)
{
	struct span rest = span_text(examples);
	struct span line;
	buffer_add_text(out, "\nexamples:\n");
	while (rest.len > 0 && span_split(&rest, '\n', &line)) {
		buffer_add_text(out, "  ");
		buffer_add_span(out, line);
		buffer_add_byte(out, '\n');
	}
}
