#include "server/commands/command_words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/format/json_node.h"
#include "base/near_word.h"

enum { ERROR_LINE_MAX_BYTES = 64 * 1024 };

static void take_variables(const struct command_flag *flags, size_t flag_count);
static void take_json(
	const struct command_flag *flags, size_t flag_count, int count, char *const *words);
static void print_error_line(const struct error *err);
static int take_flag(const struct command_flag *flags, size_t flag_count, int count,
	char *const *words, int *at, struct error *err);
static const struct command_flag *find(
	const struct command_flag *flags, size_t flag_count, struct span name);
static int refuse(
	const struct command_flag *flags, size_t flag_count, struct span name, struct error *err);
static int set_value(const struct command_flag *flag, const char *value, struct error *err);
static int add(struct command_list *list, const char *item, const char *name, struct error *err);

int command_words_read(const struct command_flag *flags, size_t flag_count, int count,
	char *const *words, struct command_given *out, struct error *err)
{
	*out = (struct command_given){.help = false};
	take_variables(flags, flag_count);
	take_json(flags, flag_count, count, words);
	for (int i = 0; i < count; i++) {
		if (strcmp(words[i], "--help") == 0 || strcmp(words[i], "-h") == 0) {
			out->help = true;
			return 0;
		}
		const int outcome = words[i][0] == '-' && words[i][1] != '\0'
			? take_flag(flags, flag_count, count, words, &i, err)
			: add(&out->arguments, words[i], "an argument", err);
		if (outcome != 0)
			return -1;
	}
	return 0;
}

int command_words_read_flags(const struct command_line *line, const struct command_flag *flags,
	size_t flag_count, bool *out_help, struct error *err)
{
	struct command_given given;
	if (command_words_read(flags, flag_count, line->count, line->words, &given, err) != 0)
		return -1;
	*out_help = given.help;
	if (given.help)
		return -1;
	return given.arguments.count == 0
		? 0
		: error_set(err, ERROR_INVALID, "%s takes no argument such as '%.60s'",
			  line->command, given.arguments.items[0]);
}

int command_words_need_data(const char *data, struct error *err)
{
	return data != NULL ? 0
			    : error_set(err, ERROR_INVALID,
				      "name the data folder with --data DIR or DELTABUCKET_DATA");
}

int command_words_end(const char *command, const char *usage, bool help, const struct error *err)
{
	if (help) {
		fputs(usage, stdout);
		return 0;
	}
	fprintf(stderr, "deltabucketd: %s (deltabucketd %s --help shows how)\n", err->text,
		command);
	return COMMAND_USAGE;
}

int command_words_refuse(
	const char *command, const char *usage, bool help, bool json, const struct error *err)
{
	if (json && !help)
		print_error_line(err);
	return command_words_end(command, usage, help, err);
}

int command_words_fail(const char *what, bool json, const struct error *err)
{
	if (json)
		print_error_line(err);
	fprintf(stderr, "deltabucketd: %s: %s\n", what, err->text);
	return COMMAND_FAILED;
}

void command_words_print_error(struct json_writer *writer, const struct error *err)
{
	json_writer_object(writer, "error");
	json_writer_text(writer, "code", span_text(error_kind_name(err->kind)));
	json_writer_text(writer, "message", span_text(err->text));
	json_writer_end(writer, '}');
}

static void print_error_line(const struct error *err)
{
	struct buffer line;
	struct json_writer writer;
	buffer_init(&line, ERROR_LINE_MAX_BYTES);
	json_writer_init(&writer, &line);
	json_writer_object(&writer, NULL);
	command_words_print_error(&writer, err);
	json_writer_end(&writer, '}');
	printf("%s\n", buffer_text(&line));
	buffer_release(&line);
}

static void take_variables(const struct command_flag *flags, size_t flag_count)
{
	for (size_t i = 0; i < flag_count; i++)
		if (flags[i].variable != NULL)
			*flags[i].text = getenv(flags[i].variable);
}

/* A refusal of an earlier word must be told as the caller wants it. */
static void take_json(
	const struct command_flag *flags, size_t flag_count, int count, char *const *words)
{
	const struct command_flag *const flag = find(flags, flag_count, span_text("--json"));
	for (int i = 0; flag != NULL && i < count; i++)
		*flag->switched |= strcmp(words[i], flag->name) == 0;
}

/* Takes the flag at words[*at], and moves *at to its value if that is a word of its own. */
static int take_flag(const struct command_flag *flags, size_t flag_count, int count,
	char *const *words, int *at, struct error *err)
{
	const char *const word = words[*at];
	const char *const equals = strchr(word, '=');
	const struct span name =
		equals != NULL ? span_of(word, (size_t)(equals - word)) : span_text(word);
	const struct command_flag *const flag = find(flags, flag_count, name);
	if (flag == NULL)
		return refuse(flags, flag_count, name, err);
	if (flag->switched != NULL) {
		*flag->switched = true;
		return equals == NULL
			? 0
			: error_set(err, ERROR_INVALID, "%s takes no value", flag->name);
	}
	if (equals == NULL && *at + 1 >= count)
		return error_set(err, ERROR_INVALID, "%s needs a value", flag->name);
	return set_value(flag, equals != NULL ? equals + 1 : words[++*at], err);
}

static const struct command_flag *find(
	const struct command_flag *flags, size_t flag_count, struct span name)
{
	for (size_t i = 0; i < flag_count; i++)
		if (span_equal_text(name, flags[i].name))
			return &flags[i];
	return NULL;
}

static int refuse(
	const struct command_flag *flags, size_t flag_count, struct span name, struct error *err)
{
	struct near_word near;
	char hint[NEAR_WORD_HINT_BYTES];
	near_word_begin(&near, name);
	for (size_t i = 0; i < flag_count; i++)
		near_word_offer(&near, flags[i].name);
	return error_set(err, ERROR_INVALID, "there is no flag %.*s%s",
		(int)span_slice(name, 0, 100).len, (const char *)name.data,
		near_word_hint(&near, hint));
}

static int set_value(const struct command_flag *flag, const char *value, struct error *err)
{
	if (flag->list != NULL)
		return add(flag->list, value, flag->name, err);
	ASSERT(flag->text != NULL);
	*flag->text = value;
	return 0;
}

static int add(struct command_list *list, const char *item, const char *name, struct error *err)
{
	ASSERT(list->count <= COMMAND_LIST_MAX);
	if (list->count == COMMAND_LIST_MAX)
		return error_set(err, ERROR_INVALID, "%s is given more than %d times", name,
			COMMAND_LIST_MAX);
	list->items[list->count++] = item;
	return 0;
}
