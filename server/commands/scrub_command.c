/* Sends one request to the admin route of scrub, or runs the same round on the store without a
 * server (store_command.h). Both ways give the same JSON, from which the text is printed. */
#include "server/commands/scrub_command.h"

#include <stdio.h>
#include <stdlib.h>

#include "api/admin/admin_scrub.h"
#include "base/format/json_node.h"
#include "server/commands/command_words.h"
#include "server/commands/store_command.h"

enum {
	EXIT_DAMAGED = 4,
	ANSWER_MAX_BYTES = 64 * 1024,
	RATE_MAX_MIB = 65536,
	SCRUB_WAIT_MS = 21 * 24 * 60 * 60 * 1000
};

struct scrub_options_given {
	const char *data;
	const char *master_key;
	const char *rate;
	bool resume;
	bool json;
};

static const char usage[] =
	"usage: deltabucketd scrub [FLAGS]\n\n"
	"Reads all sealed packs on the disk, verifies every record, heals what it has another copy of, and\n"
	"prints what it found. Works with a running server, which otherwise does the same by itself every\n"
	"28 days, and without one. `deltabucket damage` says what the damage touches.\n\n"
	"examples:\n"
	"  deltabucketd scrub --data ./data\n"
	"  deltabucketd scrub --data ./data --rate 200\n"
	"  deltabucketd scrub --data ./data --resume      # the rest of a round that was stopped\n\n"
	"flags:\n"
	"  --data DIR         the server's data folder (DELTABUCKET_DATA)\n"
	"  --master-key FILE  as for the server (DELTABUCKET_MASTER_KEY)\n"
	"  --rate MIB         read at most so many MiB/s; 0: no limit (0)\n"
	"  --resume           go on with the round that is in progress\n"
	"  --json             one JSON object on stdout\n"
	"  --help, -h         this text\n\n"
	"exit status: 0 nothing is damaged, 1 failed, 2 wrong usage, 4 damage is left\n";

static int parse(const struct command_line *line, struct scrub_options_given *options,
	bool *out_help, struct error *err);
static int run_scrub(
	const struct scrub_options_given *options, struct buffer *out, struct error *err);
static void print_request(const struct scrub_options_given *options, struct buffer *out);
static int scrub_command_work(void *owner, struct store *store, const struct data_folder *folder,
	struct buffer *out, struct error *err);
static int print_answer(const struct scrub_options_given *options, const struct buffer *answer);
static unsigned long long number_of(const struct json_node *root, const char *name);

int scrub_command(int argument_count, char **arguments)
{
	struct scrub_options_given options = {0};
	struct error err = {0};
	struct buffer answer;
	const struct command_line line = {
		.command = "scrub", .count = argument_count, .words = arguments};
	bool help = false;
	if (parse(&line, &options, &help, &err) != 0)
		return command_words_refuse("scrub", usage, help, options.json, &err);
	buffer_init(&answer, ANSWER_MAX_BYTES);
	const int status = run_scrub(&options, &answer, &err) == 0
		? print_answer(&options, &answer)
		: command_words_fail("scrub", options.json, &err);
	buffer_release(&answer);
	return status;
}

static int parse(const struct command_line *line, struct scrub_options_given *options,
	bool *out_help, struct error *err)
{
	const struct command_flag flags[] = {
		{.name = "--data", .variable = "DELTABUCKET_DATA", .text = &options->data},
		{.name = "--master-key",
			.variable = "DELTABUCKET_MASTER_KEY",
			.text = &options->master_key},
		{.name = "--rate", .text = &options->rate},
		{.name = "--resume", .switched = &options->resume},
		{.name = "--json", .switched = &options->json}};
	uint64_t rate = 0;
	if (command_words_read_flags(
		    line, flags, sizeof(flags) / sizeof(flags[0]), out_help, err) != 0 ||
		command_words_need_data(options->data, err) != 0)
		return -1;
	if (options->rate != NULL &&
		(!span_parse_u64(span_text(options->rate), &rate) || rate > RATE_MAX_MIB))
		return error_set(err, ERROR_INVALID,
			"--rate takes a number of MiB/s from 0 to %d, not '%.60s'", RATE_MAX_MIB,
			options->rate);
	return 0;
}

static int run_scrub(
	const struct scrub_options_given *options, struct buffer *out, struct error *err)
{
	struct buffer body;
	buffer_init(&body, ANSWER_MAX_BYTES);
	print_request(options, &body);
	const struct store_command command = {
		.data = options->data,
		.master_key = options->master_key,
		.work = scrub_command_work,
		.owner = &body,
		.request = {.method = "POST",
			.target = "/-/scrub",
			.body = buffer_span(&body),
			.wait_ms = SCRUB_WAIT_MS},
	};
	const int outcome = store_command_run(&command, out, err);
	buffer_release(&body);
	return outcome;
}

static void print_request(const struct scrub_options_given *options, struct buffer *out)
{
	struct json_writer json;
	uint64_t rate;
	json_writer_init(&json, out);
	json_writer_object(&json, NULL);
	json_writer_bool(&json, "resume", options->resume);
	if (options->rate != NULL && span_parse_u64(span_text(options->rate), &rate))
		json_writer_u64(&json, "rate", rate);
	json_writer_end(&json, '}');
}

static int scrub_command_work(void *owner, struct store *store, const struct data_folder *folder,
	struct buffer *out, struct error *err)
{
	(void)folder;
	const struct buffer *const body = owner;
	struct scrub_request request = {.resumes = false};
	if (admin_scrub_parse(buffer_span(body), &request, err) != 0 ||
		scrub_run(store_parts(store)->scrub, &request, err) != 0)
		return -1;
	admin_scrub_print(&request, out);
	return 0;
}

/* Returns the exit status. */
static int print_answer(const struct scrub_options_given *options, const struct buffer *answer)
{
	struct error err = {0};
	struct json_node *const root = json_node_parse(buffer_span(answer), "the answer", &err);
	const unsigned long long failed = number_of(root, "packs_failed");
	const unsigned long long mended = number_of(root, "packs_mended");
	const unsigned long long left = number_of(root, "damaged_now");
	if (options->json)
		printf("%s\n", buffer_text(answer));
	else
		printf("%llu packs, %llu bytes read: %llu chunks damaged, %llu healed, %llu damaged now\n",
			number_of(root, "packs"), number_of(root, "bytes"),
			number_of(root, "chunks_damaged"), number_of(root, "chunks_healed"), left);
	if (mended > 0 && !options->json)
		printf("%llu packs described themselves wrongly and were written again\n", mended);
	if (failed > 0 && !options->json)
		printf("%llu packs could not be read or mended: see the log\n", failed);
	if (left > 0 && !options->json)
		printf("`deltabucket damage` says which keys and steps that touches; send their bytes again to heal them\n");
	json_node_free(root);
	return left > 0 || failed > 0 ? EXIT_DAMAGED : 0;
}

static unsigned long long number_of(const struct json_node *root, const char *name)
{
	uint64_t number = 0;
	json_node_u64(json_node_member(root, name), &number);
	return number;
}
