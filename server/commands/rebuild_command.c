/* Works on the folder alone, under its lock: a running server has the catalog open. */
#include "server/commands/rebuild_command.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/format/json_node.h"
#include "server/commands/command_words.h"
#include "server/data_folder.h"
#include "storage/rebuild/rebuild.h"

enum { EXIT_LACKS = 4, ANSWER_MAX_BYTES = 64 * 1024 };
enum { PROMISE_HOURS = 672, PROMISE_HOURS_MAX = 8760, HOUR_MS = 3600 * 1000 };

struct rebuild_options {
	const char *data;
	const char *master_key;
	const char *promise;
	bool replaces;
	bool is_dry_run;
	bool json;
	uint64_t promise_hours;
};

static const char usage[] =
	"usage: deltabucketd rebuild [FLAGS]\n\n"
	"Makes catalog.db again from the journal of the data folder, for a store whose catalog is lost or damaged.\n"
	"The server must be stopped. Packs that the journal does not know get rows, and what they hold stays for the\n"
	"time of a promise. Exit status 4: the catalog was made and lacks changes, which the output names.\n\n"
	"examples:\n"
	"  deltabucketd rebuild --data ./data --dry-run      # says what would be there\n"
	"  deltabucketd rebuild --data ./data\n"
	"  deltabucketd rebuild --data ./data --replace      # sets a damaged catalog aside\n\n"
	"flags:\n"
	"  --data DIR           the server's data folder (DELTABUCKET_DATA)\n"
	"  --master-key FILE    as for the server (DELTABUCKET_MASTER_KEY)\n"
	"  --dry-run            make the catalog, say what it holds, and remove it\n"
	"  --replace            set a catalog that is there aside, in set-aside/\n"
	"  --xet-promise HOURS  how long content stays that the journal does not know (672)\n"
	"  --json               one JSON object on stdout\n"
	"  --help, -h           this text\n";

static int parse(const struct command_line *line, struct rebuild_options *options, bool *out_help,
	struct error *err);
static int check(struct rebuild_options *options, struct error *err);
static int run(
	const struct rebuild_options *options, struct rebuild_report *out, struct error *err);
static bool lacks_changes(const struct rebuild_report *report);
static void print_json(const struct rebuild_report *report);
static void print_text(const struct rebuild_options *options, const struct rebuild_report *report);
static void print_packs(const struct rebuild_report *report);
static void print_losses(const struct rebuild_report *report);

int rebuild_command(int argument_count, char **arguments)
{
	struct rebuild_options options = {.promise_hours = PROMISE_HOURS};
	struct rebuild_report report = {.acknowledged = 0};
	struct error err = {0};
	const struct command_line line = {
		.command = "rebuild", .count = argument_count, .words = arguments};
	bool help = false;
	const int parsed = parse(&line, &options, &help, &err);
	if (parsed != 0)
		return command_words_end("rebuild", usage, help, &err);
	if (run(&options, &report, &err) != 0) {
		if (report.nameless_packs > 0)
			printf("%zu pack files of %" PRIu64 " bytes have no names\n",
				report.nameless_packs, report.nameless_bytes);
		fprintf(stderr, "deltabucketd: rebuild: %s\n", err.text);
		return COMMAND_FAILED;
	}
	if (options.json)
		print_json(&report);
	else
		print_text(&options, &report);
	return lacks_changes(&report) ? EXIT_LACKS : 0;
}

static int parse(const struct command_line *line, struct rebuild_options *options, bool *out_help,
	struct error *err)
{
	const struct command_flag flags[] = {
		{.name = "--data", .variable = "DELTABUCKET_DATA", .text = &options->data},
		{.name = "--master-key",
			.variable = "DELTABUCKET_MASTER_KEY",
			.text = &options->master_key},
		{.name = "--xet-promise", .text = &options->promise},
		{.name = "--dry-run", .switched = &options->is_dry_run},
		{.name = "--replace", .switched = &options->replaces},
		{.name = "--json", .switched = &options->json}};
	if (command_words_read_flags(
		    line, flags, sizeof(flags) / sizeof(flags[0]), out_help, err) != 0 ||
		command_words_need_data(options->data, err) != 0)
		return -1;
	return check(options, err);
}

static int check(struct rebuild_options *options, struct error *err)
{
	if (options->promise != NULL &&
		(!span_parse_u64(span_text(options->promise), &options->promise_hours) ||
			options->promise_hours > PROMISE_HOURS_MAX))
		return error_set(err, ERROR_INVALID,
			"--xet-promise takes hours from 0 to %d, not '%.60s'", PROMISE_HOURS_MAX,
			options->promise);
	return 0;
}

static int run(const struct rebuild_options *options, struct rebuild_report *out, struct error *err)
{
	struct data_folder folder;
	if (data_folder_open(
		    &folder, file_system(), options->data, options->master_key, false, err) != 0)
		return -1;
	const struct rebuild_params params = {.folder = folder.path,
		.files = file_system(),
		.promise_ms = (int64_t)options->promise_hours * HOUR_MS,
		.replaces = options->replaces,
		.is_dry_run = options->is_dry_run};
	const int result = rebuild_run(&params, out, err);
	data_folder_close(&folder);
	return result;
}

/* A record that was being written when the process died ends the journal too, and lacks nothing. */
static bool lacks_changes(const struct rebuild_report *report)
{
	return report->acknowledged > report->way.end.change ||
		(!report->is_exact && report->way.gap[0] != '\0');
}

static void print_json(const struct rebuild_report *report)
{
	struct buffer out;
	struct json_writer json;
	buffer_init(&out, ANSWER_MAX_BYTES);
	json_writer_init(&json, &out);
	json_writer_object(&json, NULL);
	json_writer_text(&json, "snapshot", span_text(report->snapshot_name));
	json_writer_u64(&json, "damaged_snapshots", report->damaged_snapshots);
	json_writer_u64(&json, "records", report->way.records);
	json_writer_u64(&json, "change", (uint64_t)report->way.end.change);
	json_writer_u64(&json, "acknowledged", (uint64_t)report->acknowledged);
	json_writer_text(&json, "gap", span_text(report->way.gap));
	json_writer_u64(&json, "buckets", (uint64_t)report->buckets);
	json_writer_u64(&json, "objects", (uint64_t)report->objects);
	json_writer_u64(&json, "steps", (uint64_t)report->steps);
	json_writer_u64(&json, "packs", report->packs.named);
	json_writer_u64(&json, "packs_missing", report->packs.missing);
	json_writer_u64(&json, "packs_found", report->packs.found);
	json_writer_u64(&json, "packs_grown", report->packs.grown);
	json_writer_u64(&json, "packs_left", report->packs.left);
	json_writer_u64(&json, "xorbs_promised", report->packs.promised_xorbs);
	json_writer_end(&json, '}');
	printf("%s\n", buffer_text(&out));
	buffer_release(&out);
}

static void print_text(const struct rebuild_options *options, const struct rebuild_report *report)
{
	char time[CLOCK_TEXT_BYTES];
	clock_format_iso(report->way.made_ms, time);
	printf("catalog.db %s from %s (change %" PRId64 ") and %zu records after it\n",
		options->is_dry_run ? "can be made" : "was made", report->snapshot_name,
		report->way.header.point.change, report->way.records);
	printf("it ends with change %" PRId64 " of %s: %" PRId64 " buckets, %" PRId64
	       " objects, %" PRId64 " steps\n",
		report->way.end.change, time, report->buckets, report->objects, report->steps);
	print_packs(report);
	print_losses(report);
}

static void print_packs(const struct rebuild_report *report)
{
	const struct pack_adoption *packs = &report->packs;
	printf("%zu packs are named, %zu of them are missing\n", packs->named, packs->missing);
	if (packs->found + packs->grown > 0)
		printf("%zu files were not named, %zu have grown since: %" PRIu64
		       " xorbs of them got a promise\n",
			packs->found, packs->grown, packs->promised_xorbs);
	if (packs->left > 0)
		printf("%zu files hold no pack of this store and are left for the next start\n",
			packs->left);
}

static void print_losses(const struct rebuild_report *report)
{
	if (report->damaged_snapshots > 0)
		printf("%zu newer snapshots are damaged\n", report->damaged_snapshots);
	if (report->way.gap[0] != '\0')
		printf("the journal ends there: %s\n", report->way.gap);
	if (report->acknowledged > report->way.end.change)
		printf("changes %" PRId64 " to %" PRId64 ", which clients were told of, are lost\n",
			report->way.end.change + 1, report->acknowledged);
}
