/* Reads and changes only the folder set-aside/ below the data folder, so it needs no lock and no
 * server. Without `drop` it lists the files. */
#include "server/commands/set_aside_command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/format/json_node.h"
#include "server/commands/command_words.h"
#include "server/data_folder.h"
#include "storage/packs/set_aside.h"

enum { ANSWER_MAX_BYTES = 32 * 1024 * 1024 };

struct set_aside_options {
	const char *data;
	struct command_list words; /* "drop" and the names */
	bool drops;
	bool drops_all;
	bool json;
};

static const char usage[] =
	"usage: deltabucketd set-aside [FLAGS]\n"
	"       deltabucketd set-aside drop NAME... | --all [FLAGS]\n\n"
	"Lists the files that a start has set aside, because no row of the catalog names them and nothing proves\n"
	"that they are not needed. drop deletes them. A file that the catalog names again comes back by itself.\n\n"
	"examples:\n"
	"  deltabucketd set-aside --data ./data\n"
	"  deltabucketd set-aside drop --data ./data --all\n\n"
	"flags:\n"
	"  --data DIR  the server's data folder (DELTABUCKET_DATA)\n"
	"  --all       with drop: all of them\n"
	"  --json      one JSON object on stdout\n"
	"  --help, -h  this text\n";

static int parse(int count, char **words, struct set_aside_options *options, bool *out_help,
	struct error *err);
static int check(const struct set_aside_options *options, struct error *err);
static int run(const struct set_aside_options *options, struct error *err);
static int drop(
	const struct set_aside_options *options, const struct set_aside *aside, struct error *err);
static int drop_each(const struct set_aside_options *options, const struct set_aside *aside,
	struct json_writer *json, struct error *err);
static void print_json(const struct set_aside *aside);
static void print_list(const struct set_aside *aside);

int set_aside_command(int argument_count, char **arguments)
{
	struct set_aside_options options = {0};
	struct error err = {0};
	bool help = false;
	const int parsed = parse(argument_count, arguments, &options, &help, &err);
	if (parsed != 0)
		return command_words_refuse("set-aside", usage, help, options.json, &err);
	if (run(&options, &err) == 0)
		return 0;
	return command_words_fail("set-aside", options.json, &err);
}

static int parse(int count, char **words, struct set_aside_options *options, bool *out_help,
	struct error *err)
{
	const struct command_flag flags[] = {
		{.name = "--data", .variable = "DELTABUCKET_DATA", .text = &options->data},
		{.name = "--all", .switched = &options->drops_all},
		{.name = "--json", .switched = &options->json}};
	struct command_given given;
	if (command_words_read(
		    flags, sizeof(flags) / sizeof(flags[0]), count, words, &given, err) != 0)
		return -1;
	*out_help = given.help;
	if (given.help)
		return -1;
	options->words = given.arguments;
	options->drops = options->words.count > 0 && strcmp(options->words.items[0], "drop") == 0;
	return check(options, err);
}

static int check(const struct set_aside_options *options, struct error *err)
{
	const struct command_list *const words = &options->words;
	if (command_words_need_data(options->data, err) != 0)
		return -1;
	if (!options->drops && words->count > 0)
		return error_set(err, ERROR_INVALID,
			"there is no command `set-aside %.60s`; without an argument it lists, and `drop` deletes",
			words->items[0]);
	if (!options->drops && options->drops_all)
		return error_set(err, ERROR_INVALID, "--all needs drop");
	if (options->drops && options->drops_all == (words->count > 1))
		return error_set(err, ERROR_INVALID, "name the files to drop, or use --all");
	return 0;
}

static int run(const struct set_aside_options *options, struct error *err)
{
	struct set_aside aside;
	if (data_folder_need_store(options->data, err) != 0)
		return -1;
	if (set_aside_list(options->data, &aside, err) != 0)
		return -1;
	const int result = options->drops ? drop(options, &aside, err) : 0;
	if (!options->drops && options->json)
		print_json(&aside);
	else if (!options->drops)
		print_list(&aside);
	set_aside_release(&aside);
	return result;
}

/* With --json prints what was dropped, also when it failed before the end. */
static int drop(
	const struct set_aside_options *options, const struct set_aside *aside, struct error *err)
{
	struct buffer out;
	struct json_writer json;
	buffer_init(&out, ANSWER_MAX_BYTES);
	json_writer_init(&json, &out);
	json_writer_object(&json, NULL);
	json_writer_array(&json, "dropped");
	const int result = drop_each(options, aside, &json, err);
	json_writer_end(&json, ']');
	json_writer_end(&json, '}');
	if (options->json)
		printf("%s\n", buffer_text(&out));
	buffer_release(&out);
	return result;
}

static int drop_each(const struct set_aside_options *options, const struct set_aside *aside,
	struct json_writer *json, struct error *err)
{
	const bool all = options->drops_all;
	const size_t count = all ? aside->count : options->words.count - 1;
	for (size_t i = 0; i < count; i++) {
		const char *const name = all ? aside->files[i].name : options->words.items[i + 1];
		if (set_aside_drop(file_system(), options->data, name, err) != 0)
			return -1;
		json_writer_text(json, NULL, span_text(name));
	}
	return 0;
}

static void print_json(const struct set_aside *aside)
{
	struct buffer out;
	struct json_writer json;
	buffer_init(&out, ANSWER_MAX_BYTES);
	json_writer_init(&json, &out);
	json_writer_object(&json, NULL);
	json_writer_array(&json, "files");
	for (size_t i = 0; i < aside->count; i++) {
		json_writer_object(&json, NULL);
		json_writer_text(&json, "name", span_text(aside->files[i].name));
		json_writer_u64(&json, "bytes", aside->files[i].bytes);
		json_writer_end(&json, '}');
	}
	json_writer_end(&json, ']');
	json_writer_u64(&json, "bytes", aside->bytes);
	json_writer_end(&json, '}');
	printf("%s\n", buffer_text(&out));
	buffer_release(&out);
}

static void print_list(const struct set_aside *aside)
{
	for (size_t i = 0; i < aside->count; i++)
		printf("%12llu  %s\n", (unsigned long long)aside->files[i].bytes,
			aside->files[i].name);
	printf("%zu files of %llu bytes are set aside\n", aside->count,
		(unsigned long long)aside->bytes);
}
