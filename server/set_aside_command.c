#include "server/set_aside_command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_node.h"
#include "storage/set_aside.h"

enum { ANSWER_MAX_BYTES = 32 * 1024 * 1024 };
enum { EXIT_FAILED = 1, EXIT_USAGE = 2 };

struct set_aside_options {
	const char *data;
	char **names; /* of drop */
	int name_count;
	bool drops;
	bool drops_all;
	bool json;
};

static const char usage[] =
	"deltabucketd set-aside --data DIR [--json]\n"
	"deltabucketd set-aside drop --data DIR NAME... | --all\n\n"
	"Lists the files that a start has set aside because no row of the catalog names them and nothing proves\n"
	"that nobody needs them; drop removes them for good. What a catalog names again comes back by itself.\n";

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
		printf("%12llu  %s\n", (unsigned long long)aside->files[i].bytes, aside->files[i].name);
	printf("%zu files of %llu bytes are set aside\n", aside->count, (unsigned long long)aside->bytes);
}

static int drop_names(const struct set_aside_options *options, struct error *err)
{
	for (int i = 0; i < options->name_count; i++)
		if (set_aside_drop(file_system(), options->data, options->names[i], err) != 0)
			return -1;
	return 0;
}

static int drop_all(const struct set_aside_options *options, const struct set_aside *aside, struct error *err)
{
	for (size_t i = 0; i < aside->count; i++)
		if (set_aside_drop(file_system(), options->data, aside->files[i].name, err) != 0)
			return -1;
	return 0;
}

static int run(const struct set_aside_options *options, struct error *err)
{
	struct set_aside aside;
	if (options->drops && !options->drops_all)
		return drop_names(options, err);
	if (set_aside_list(options->data, &aside, err) != 0)
		return -1;
	int result = options->drops ? drop_all(options, &aside, err) : 0;
	if (!options->drops && options->json)
		print_json(&aside);
	else if (!options->drops)
		print_list(&aside);
	set_aside_release(&aside);
	return result;
}

/* Names are gathered at the front of the arguments. */
static bool parse(int count, char **arguments, struct set_aside_options *options)
{
	options->data = getenv("DELTABUCKET_DATA");
	options->names = arguments;
	for (int i = 0; i < count; i++) {
		if (strcmp(arguments[i], "--data") == 0 && i + 1 < count)
			options->data = arguments[++i];
		else if (strncmp(arguments[i], "--data=", 7) == 0)
			options->data = arguments[i] + 7;
		else if (strcmp(arguments[i], "--all") == 0)
			options->drops_all = true;
		else if (strcmp(arguments[i], "--json") == 0)
			options->json = true;
		else if (i == 0 && strcmp(arguments[i], "drop") == 0)
			options->drops = true;
		else if (arguments[i][0] != '-' && options->drops)
			options->names[options->name_count++] = arguments[i];
		else
			return false;
	}
	bool says_what = options->drops_all != (options->name_count > 0);
	return options->data != NULL && (options->drops ? says_what : !options->drops_all);
}

int set_aside_command(int argument_count, char **arguments)
{
	struct set_aside_options options = {0};
	struct error err = {0};
	if (argument_count > 0 && (strcmp(arguments[0], "--help") == 0 || strcmp(arguments[0], "-h") == 0)) {
		fputs(usage, stdout);
		return 0;
	}
	if (!parse(argument_count, arguments, &options)) {
		fputs(usage, stderr);
		return EXIT_USAGE;
	}
	if (run(&options, &err) == 0)
		return 0;
	fprintf(stderr, "deltabucketd: set-aside: %s\n", err.text);
	return EXIT_FAILED;
}
