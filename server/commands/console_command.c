/* Only a running server serves the console, so the link comes from it, over DIR/control.sock. */
#include "server/commands/console_command.h"

#include <stdio.h>
#include <string.h>

#include "base/format/json_node.h"
#include "server/commands/command_words.h"
#include "server/commands/store_command.h"

enum { ANSWER_MAX_BYTES = 64 * 1024 };

struct console_options {
	const char *data;
	const char *key_id;
	bool json;
};

static const char usage[] =
	"usage: deltabucketd console [FLAGS]\n\n"
	"Prints a link that signs a browser in to the console of the running server, once and within 5 minutes.\n\n"
	"examples:\n"
	"  deltabucketd console --data ./data\n"
	"  deltabucketd console --data ./data --key KEY_ID    # sees what this key may see\n\n"
	"flags:\n"
	"  --data DIR         the server's data folder (DELTABUCKET_DATA)\n"
	"  --key ID           the key that it signs in with (the root key)\n"
	"  --json             one JSON object on stdout\n"
	"  --help, -h         this text\n";

static int parse(const struct command_line *line, struct console_options *options, bool *out_help,
	struct error *err);
static int ask(const struct console_options *options, struct buffer *out, struct error *err);
static int console_command_work(void *owner, struct store *store, const struct data_folder *folder,
	struct buffer *out, struct error *err);
static int print_answer(
	const struct console_options *options, const struct buffer *answer, struct error *err);

int console_command(int argument_count, char **arguments)
{
	struct console_options options = {0};
	struct error err = {0};
	struct buffer answer;
	const struct command_line line = {
		.command = "console", .count = argument_count, .words = arguments};
	bool help = false;
	if (parse(&line, &options, &help, &err) != 0)
		return command_words_refuse("console", usage, help, options.json, &err);
	buffer_init(&answer, ANSWER_MAX_BYTES);
	int outcome = ask(&options, &answer, &err);
	if (outcome == 0)
		outcome = print_answer(&options, &answer, &err);
	if (outcome != 0)
		command_words_fail("console", options.json, &err);
	if (answer.data != NULL)
		explicit_bzero(answer.data, answer.len);
	buffer_release(&answer);
	return outcome == 0 ? 0 : COMMAND_FAILED;
}

static int parse(const struct command_line *line, struct console_options *options, bool *out_help,
	struct error *err)
{
	const struct command_flag flags[] = {
		{.name = "--data", .variable = "DELTABUCKET_DATA", .text = &options->data},
		{.name = "--key", .text = &options->key_id},
		{.name = "--json", .switched = &options->json}};
	return command_words_read_flags(
		       line, flags, sizeof(flags) / sizeof(flags[0]), out_help, err) != 0
		? -1
		: command_words_need_data(options->data, err);
}

static int ask(const struct console_options *options, struct buffer *out, struct error *err)
{
	struct buffer body;
	struct json_writer json;
	buffer_init(&body, ANSWER_MAX_BYTES);
	json_writer_init(&json, &body);
	json_writer_object(&json, NULL);
	if (options->key_id != NULL)
		json_writer_text(&json, "key_id", span_text(options->key_id));
	json_writer_end(&json, '}');
	const struct store_command command = {.data = options->data,
		.work = console_command_work,
		.owner = (void *)(uintptr_t)options,
		.is_for_server = true,
		.request = {.method = "POST",
			.target = "/-/session-links",
			.body = buffer_span(&body)}};
	const int outcome = store_command_run(&command, out, err);
	buffer_release(&body);
	return outcome;
}

/* Nobody has the folder: no server runs. */
static int console_command_work(void *owner, struct store *store, const struct data_folder *folder,
	struct buffer *out, struct error *err)
{
	const struct console_options *const options = owner;
	(void)store, (void)folder, (void)out;
	return error_set(err, ERROR_UPSTREAM,
		"no server runs on %s, and only a running one has a console; start it first: deltabucketd --data %s",
		options->data, options->data);
}

static int print_answer(
	const struct console_options *options, const struct buffer *answer, struct error *err)
{
	struct span url = {NULL, 0};
	struct json_node *const root =
		json_node_parse(buffer_span(answer), "the server's answer", err);
	if (root == NULL)
		return -1;
	const bool has_url = json_node_text(json_node_member(root, "url"), &url);
	if (!has_url)
		error_set(err, ERROR_UPSTREAM, "the server's answer has no link");
	else if (options->json)
		printf("%s\n", buffer_text(answer));
	else
		printf("%.*s\n\nThis link signs in once, within 5 minutes. Whoever has it acts as %s%s.\n",
			(int)url.len, (const char *)url.data,
			options->key_id != NULL ? "the key " : "the root key",
			options->key_id != NULL ? options->key_id : "");
	json_node_free(root);
	return has_url ? 0 : -1;
}
