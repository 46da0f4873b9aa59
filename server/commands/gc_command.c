/* Sends one request to the admin route of gc, or runs the same round on the store without a server
 * (store_command.h). Both ways give the same JSON, from which the text is printed. */
#include "server/commands/gc_command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/admin/admin_gc.h"
#include "base/format/json_node.h"
#include "server/commands/command_words.h"
#include "server/commands/store_command.h"

enum { ANSWER_MAX_BYTES = 64 * 1024, GC_WAIT_MS = 7 * 24 * 60 * 60 * 1000 };

struct gc_options_given {
	const char *data;
	const char *master_key;
	const char *live_percent;
	bool dry_run;
	bool ends_promises;
	bool json;
};

static const char usage[] =
	"usage: deltabucketd gc [FLAGS]\n\n"
	"Deletes packs that nothing needs, rewrites packs of which less than N percent is needed, and prints\n"
	"how much that freed. Works with a running server, at its gc_rate, and without one.\n\n"
	"examples:\n"
	"  deltabucketd gc --data ./data --dry-run\n"
	"  deltabucketd gc --data ./data --live-percent 50\n"
	"  deltabucketd gc --data ./data --end-promises      # a full disk, and files that no bucket needs\n\n"
	"flags:\n"
	"  --data DIR         the server's data folder (DELTABUCKET_DATA)\n"
	"  --master-key FILE  as for the server (DELTABUCKET_MASTER_KEY)\n"
	"  --dry-run          print what it would free, and change nothing\n"
	"  --live-percent N   rewrite packs of which less than N percent is needed (90)\n"
	"  --end-promises     free content that Hub clients have sent and no file in a bucket needs: deleted files,\n"
	"                     which stay for a day, and promised content (xet_promise). A client that sent it\n"
	"                     must clear its cache ($HF_HOME/xet) before it sends it again\n"
	"  --json             one JSON object on stdout\n"
	"  --help, -h         this text\n";

static int parse(const struct command_line *line, struct gc_options_given *options, bool *out_help,
	struct error *err);
static bool is_percent(const char *text);
static int run_gc(const struct gc_options_given *options, struct buffer *out, struct error *err);
static void print_request(const struct gc_options_given *options, struct buffer *out);
static int gc_command_work(void *owner, struct store *store, const struct data_folder *folder,
	struct buffer *out, struct error *err);
static void print_answer(const struct gc_options_given *options, const struct buffer *answer);
static unsigned long long number_of(const struct json_node *root, const char *name);
static void print_registered(const struct gc_options_given *options, unsigned long long bytes);

int gc_command(int argument_count, char **arguments)
{
	struct gc_options_given options = {0};
	struct error err = {0};
	struct buffer answer;
	const struct command_line line = {
		.command = "gc", .count = argument_count, .words = arguments};
	bool help = false;
	const int parsed = parse(&line, &options, &help, &err);
	if (parsed != 0)
		return command_words_refuse("gc", usage, help, options.json, &err);
	buffer_init(&answer, ANSWER_MAX_BYTES);
	const int outcome = run_gc(&options, &answer, &err);
	if (outcome == 0)
		print_answer(&options, &answer);
	else
		command_words_fail("gc", options.json, &err);
	buffer_release(&answer);
	return outcome == 0 ? 0 : COMMAND_FAILED;
}

static int parse(const struct command_line *line, struct gc_options_given *options, bool *out_help,
	struct error *err)
{
	const struct command_flag flags[] = {
		{.name = "--data", .variable = "DELTABUCKET_DATA", .text = &options->data},
		{.name = "--master-key",
			.variable = "DELTABUCKET_MASTER_KEY",
			.text = &options->master_key},
		{.name = "--live-percent", .text = &options->live_percent},
		{.name = "--dry-run", .switched = &options->dry_run},
		{.name = "--end-promises", .switched = &options->ends_promises},
		{.name = "--json", .switched = &options->json}};
	if (command_words_read_flags(
		    line, flags, sizeof(flags) / sizeof(flags[0]), out_help, err) != 0 ||
		command_words_need_data(options->data, err) != 0)
		return -1;
	if (options->live_percent != NULL && !is_percent(options->live_percent))
		return error_set(err, ERROR_INVALID,
			"--live-percent takes a number from 1 to 100, not '%.60s'",
			options->live_percent);
	return 0;
}

static bool is_percent(const char *text)
{
	uint64_t number;
	return span_parse_u64(span_text(text), &number) && number >= 1 && number <= 100;
}

static int run_gc(const struct gc_options_given *options, struct buffer *out, struct error *err)
{
	struct buffer body;
	buffer_init(&body, ANSWER_MAX_BYTES);
	print_request(options, &body);
	const struct store_command command = {
		.data = options->data,
		.master_key = options->master_key,
		.work = gc_command_work,
		.owner = &body,
		.request = {.method = "POST",
			.target = "/-/gc",
			.body = buffer_span(&body),
			.wait_ms = GC_WAIT_MS},
	};
	const int outcome = store_command_run(&command, out, err);
	buffer_release(&body);
	return outcome;
}

static void print_request(const struct gc_options_given *options, struct buffer *out)
{
	struct json_writer json;
	uint64_t percent;
	json_writer_init(&json, out);
	json_writer_object(&json, NULL);
	json_writer_bool(&json, "dry_run", options->dry_run);
	json_writer_bool(&json, "ends_promises", options->ends_promises);
	if (options->live_percent != NULL &&
		span_parse_u64(span_text(options->live_percent), &percent))
		json_writer_u64(&json, "live_percent", percent);
	json_writer_end(&json, '}');
}

static int gc_command_work(void *owner, struct store *store, const struct data_folder *folder,
	struct buffer *out, struct error *err)
{
	(void)folder;
	const struct buffer *const body = owner;
	struct gc_request request = {.dry_run = false};
	if (admin_gc_parse(buffer_span(body), &request, err) != 0 ||
		gc_run(store_parts(store)->gc, &request, err) != 0)
		return -1;
	admin_gc_print(&request, out);
	return 0;
}

static void print_answer(const struct gc_options_given *options, const struct buffer *answer)
{
	struct error err = {0};
	if (options->json) {
		printf("%s\n", buffer_text(answer));
		return;
	}
	struct json_node *const root = json_node_parse(buffer_span(answer), "the answer", &err);
	const char *const would = options->dry_run ? "would be " : "";
	printf("%llu packs of %llu bytes: %llu %sdeleted, %llu %scompacted, %llu bytes %sfreed\n",
		number_of(root, "packs"), number_of(root, "bytes"),
		number_of(root, "packs_deleted"), would, number_of(root, "packs_compacted"), would,
		number_of(root, "bytes_freed"), would);
	if (number_of(root, "packs_waiting") > 0)
		printf("%llu packs are in use and are left for later\n",
			number_of(root, "packs_waiting"));
	print_registered(options, number_of(root, "bytes_registered"));
	if (number_of(root, "bytes_promised") > 0)
		printf("about %llu bytes that no file needs are kept for the clients that sent them (xet_promise); --end-promises frees them\n",
			number_of(root, "bytes_promised"));
	if (number_of(root, "rows_damaged") > 0)
		printf("%llu damaged rows of the catalog were set aside: see the log\n",
			number_of(root, "rows_damaged"));
	if (number_of(root, "sweeps_failed") > 0)
		printf("%llu kinds of leftovers could not be swept: see the log\n",
			number_of(root, "sweeps_failed"));
	json_node_free(root);
}

static unsigned long long number_of(const struct json_node *root, const char *name)
{
	uint64_t number = 0;
	json_node_u64(json_node_member(root, name), &number);
	return number;
}

static void print_registered(const struct gc_options_given *options, unsigned long long bytes)
{
	if (bytes == 0)
		return;
	if (options->dry_run && options->ends_promises)
		printf("files of %llu bytes that no bucket has would be freed too\n", bytes);
	else
		/* With --end-promises they are left only because a shard was using them. */
		printf("files of %llu bytes that no bucket has were sent by clients within a day and stay that long%s\n",
			bytes, options->ends_promises ? "" : "; --end-promises frees them");
}
