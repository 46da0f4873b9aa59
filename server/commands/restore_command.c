/* It needs no master key: secrets stay sealed in the catalog. It makes none either, since a new one
 * could not open them. */
#include "server/commands/restore_command.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/format/json_node.h"
#include "server/commands/command_words.h"
#include "server/data_folder.h"
#include "server/commands/identity_file.h"
#include "storage/backup/restore.h"

enum { EXIT_LACKS = 4, ANSWER_MAX_BYTES = 1024 * 1024 * 1024, PROMISE_HOURS = 672 };
static const int64_t HOUR_MS = 3600 * 1000;

struct restore_options {
	const char *data;
	const char *place;
	const char *moment;
	const char *identity;
	bool lists;
	bool json;
	struct age_identities identities;
};

static const char usage[] =
	"usage: deltabucketd restore --from PLACE --data DIR [FLAGS]\n"
	"       deltabucketd restore --from PLACE --list\n\n"
	"Makes a data folder from a moment of a backup (deltabucketd backup). Every piece is compared with its digest,\n"
	"and the catalog with the counts and sums that it had. An interrupted run is repeated and goes on.\n"
	"Put master.key, which a backup does not have, into the folder before the server is started.\n"
	"Exit status 4: the store was restored, and lacks files that the backup lacks.\n\n"
	"examples:\n"
	"  deltabucketd restore --from /mnt/backup --list\n"
	"  deltabucketd restore --from /mnt/backup --data ./data\n"
	"  deltabucketd restore --from s3://backups/models --data ./data --identity key.txt\n\n"
	"flags:\n"
	"  --from PLACE      as --to of backup\n"
	"  --data DIR        a folder without a store; made when it is missing (DELTABUCKET_DATA)\n"
	"  --moment MOMENT   one that --list shows, or latest (latest)\n"
	"  --identity FILE   the secret key of an encrypted backup, as age-keygen wrote it\n"
	"  --list            list the moments\n"
	"  --json            one JSON object on stdout\n"
	"  --help, -h        this text\n";

static int parse(const struct command_line *line, struct restore_options *options, bool *out_help,
	struct error *err);
static int check(const struct restore_options *options, struct error *err);
static int run(struct restore_options *options, struct error *err);
static int run_from(
	const struct restore_options *options, struct backup_target *target, struct error *err);
static void list_moments(const struct backup_moments *moments, bool json);
static void list_json(const struct backup_moments *moments);
static int restore_moment(const struct restore_options *options, struct backup_vault *vault,
	const struct backup_moment *moment, struct error *err);
static void print_report(const struct restore_options *options, const struct backup_moment *moment,
	const struct restore_report *report);
static void print_json(const struct backup_moment *moment, const struct restore_report *report);

int restore_command(int argument_count, char **arguments)
{
	struct restore_options options = {.moment = "latest"};
	struct error err = {0};
	const struct command_line line = {
		.command = "restore", .count = argument_count, .words = arguments};
	bool help = false;
	const int parsed = parse(&line, &options, &help, &err);
	if (parsed != 0)
		return command_words_end("restore", usage, help, &err);
	const int status = run(&options, &err);
	age_identities_wipe(&options.identities);
	if (status < 0)
		fprintf(stderr, "deltabucketd: restore: %s\n", err.text);
	return status < 0 ? COMMAND_FAILED : status;
}

static int parse(const struct command_line *line, struct restore_options *options, bool *out_help,
	struct error *err)
{
	const struct command_flag flags[] = {
		{.name = "--data", .variable = "DELTABUCKET_DATA", .text = &options->data},
		{.name = "--from", .text = &options->place},
		{.name = "--moment", .text = &options->moment},
		{.name = "--identity", .text = &options->identity},
		{.name = "--list", .switched = &options->lists},
		{.name = "--json", .switched = &options->json}};
	if (command_words_read_flags(
		    line, flags, sizeof(flags) / sizeof(flags[0]), out_help, err) != 0)
		return -1;
	return check(options, err);
}

static int check(const struct restore_options *options, struct error *err)
{
	if (options->place == NULL || options->place[0] == '\0')
		return error_set(err, ERROR_INVALID,
			"name the backup with --from, a folder or s3://BUCKET/PREFIX");
	if (options->data == NULL && !options->lists)
		return error_set(err, ERROR_INVALID,
			"name the new data folder with --data DIR or DELTABUCKET_DATA");
	return 0;
}

static int run(struct restore_options *options, struct error *err)
{
	if (options->identity != NULL &&
		identity_file_read(options->identity, &options->identities, err) != 0)
		return -1;
	struct backup_target *target =
		backup_target_open(options->place, false, file_system(), err);
	if (target == NULL)
		return -1;
	const int status = run_from(options, target, err);
	backup_target_free(target);
	return status;
}

static int run_from(
	const struct restore_options *options, struct backup_target *target, struct error *err)
{
	struct backup_vault vault = {
		.identities = options->identity != NULL ? &options->identities : NULL};
	struct backup_moments moments = {.count = 0};
	struct backup_moment moment;
	int status = backup_vault_find(&vault, target, err);
	if (status == 0)
		status = backup_moments_list(target, &moments, err);
	if (status == 0 && options->lists)
		list_moments(&moments, options->json);
	else if (status == 0)
		status = backup_moments_find(&moments, options->moment, &moment, err);
	if (status == 0 && !options->lists)
		status = restore_moment(options, &vault, &moment, err);
	backup_moments_release(&moments);
	return status;
}

static void list_moments(const struct backup_moments *moments, bool json)
{
	if (json) {
		list_json(moments);
		return;
	}
	for (size_t i = 0; i < moments->count; i++) {
		char name[BACKUP_MOMENT_BYTES];
		char time[CLOCK_TEXT_BYTES];
		backup_moment_print(&moments->items[i], name);
		clock_format_iso(moments->items[i].made_ms, time);
		printf("%s  change %" PRId64 " of %s\n", name, moments->items[i].change, time);
	}
	printf("%zu moments\n", moments->count);
}

static void list_json(const struct backup_moments *moments)
{
	struct buffer out;
	struct json_writer json;
	buffer_init(&out, ANSWER_MAX_BYTES);
	json_writer_init(&json, &out);
	json_writer_object(&json, NULL);
	json_writer_array(&json, "moments");
	for (size_t i = 0; i < moments->count; i++) {
		char name[BACKUP_MOMENT_BYTES];
		char time[CLOCK_TEXT_BYTES];
		backup_moment_print(&moments->items[i], name);
		clock_format_iso(moments->items[i].made_ms, time);
		json_writer_object(&json, NULL);
		json_writer_text(&json, "moment", span_text(name));
		json_writer_i64(&json, "change", moments->items[i].change);
		json_writer_u64(&json, "life", moments->items[i].life);
		json_writer_text(&json, "made", span_text(time));
		json_writer_end(&json, '}');
	}
	json_writer_end(&json, ']');
	json_writer_end(&json, '}');
	printf("%s\n", buffer_text(&out));
	buffer_release(&out);
}

static int restore_moment(const struct restore_options *options, struct backup_vault *vault,
	const struct backup_moment *moment, struct error *err)
{
	struct data_folder folder;
	struct restore_report report;
	if (data_folder_lock(&folder, file_system(), options->data, true, err) != 0)
		return -1;
	const struct restore_params params = {.vault = vault,
		.moment = *moment,
		.folder = folder.path,
		.files = file_system(),
		.promise_ms = PROMISE_HOURS * HOUR_MS};
	const int result = restore_run(&params, &report, err);
	data_folder_close(&folder);
	if (result != 0)
		return -1;
	print_report(options, moment, &report);
	return report.lacking > 0 ? EXIT_LACKS : 0;
}

static void print_report(const struct restore_options *options, const struct backup_moment *moment,
	const struct restore_report *report)
{
	char name[BACKUP_MOMENT_BYTES];
	if (options->json) {
		print_json(moment, report);
		return;
	}
	backup_moment_print(moment, name);
	if (report->was_done) {
		printf("%s was restored before\n", name);
		return;
	}
	printf("%s: %" PRIu64 " files of %" PRIu64 " bytes, of which %" PRIu64
	       " bytes were fetched now\n",
		name, report->files, report->bytes, report->fetched);
	printf("it ends with change %" PRId64 ": %" PRId64 " buckets, %" PRId64 " objects, %" PRId64
	       " steps\n",
		moment->change, report->catalog.buckets, report->catalog.objects,
		report->catalog.steps);
	if (report->lacking > 0)
		printf("%" PRIu64
		       " files were missing in the store already, or could not be read there\n",
			report->lacking);
	printf("put master.key, and tls/ if clients know the CA, into %s before the server starts\n",
		options->data);
}

static void print_json(const struct backup_moment *moment, const struct restore_report *report)
{
	char name[BACKUP_MOMENT_BYTES];
	struct buffer out;
	struct json_writer json;
	backup_moment_print(moment, name);
	buffer_init(&out, ANSWER_MAX_BYTES);
	json_writer_init(&json, &out);
	json_writer_object(&json, NULL);
	json_writer_text(&json, "moment", span_text(name));
	json_writer_i64(&json, "change", moment->change);
	json_writer_bool(&json, "was_done", report->was_done);
	json_writer_u64(&json, "files", report->files);
	json_writer_u64(&json, "bytes", report->bytes);
	json_writer_u64(&json, "bytes_fetched", report->fetched);
	json_writer_u64(&json, "files_lacking", report->lacking);
	json_writer_i64(&json, "buckets", report->catalog.buckets);
	json_writer_i64(&json, "objects", report->catalog.objects);
	json_writer_i64(&json, "steps", report->catalog.steps);
	json_writer_end(&json, '}');
	printf("%s\n", buffer_text(&out));
	buffer_release(&out);
}
