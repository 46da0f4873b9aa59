/* It needs no master key: secrets stay sealed in the catalog. It makes none either, since a new one
 * could not open them. */
#include "server/commands/restore_command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/commands/command_words.h"
#include "server/commands/identity_file.h"
#include "server/commands/place_words.h"
#include "server/commands/restore_report.h"
#include "server/data_folder.h"

enum { EXIT_LACKS = 4, PROMISE_HOURS = 672, CHOICES = 10 };
static const int64_t HOUR_MS = 3600 * 1000;
static const char LATEST[] = "latest";

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
	"Exit status 4: the store was restored; packs of it are not whole, since the backup has them damaged or not at\n"
	"all. The output names them.\n\n"
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
static void restore_command_tell(void *owner, const struct error *err);
static int run_from(
	const struct restore_options *options, struct backup_target *target, struct error *err);
static int list_moments(
	const struct restore_options *options, struct backup_target *target, struct error *err);
static void begin_reading(struct backup_reader *reader, struct backup_target *target);
static int restore_to(const struct restore_options *options, struct backup_vault *vault,
	struct backup_reader *reader, struct error *err);
static int restore_chosen(const struct restore_options *options, struct backup_vault *vault,
	struct restore_params *params, struct error *err);
static int choose(const struct restore_options *options, struct backup_target *target,
	struct backup_moment *out, struct error *err);

int restore_command(int argument_count, char **arguments)
{
	struct restore_options options = {.moment = LATEST};
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
	return options->lists ? backup_place_check(options->place, err)
			      : place_words_check_from(options->place, options->data, err);
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
	target->tell = restore_command_tell;
	const int status = run_from(options, target, err);
	backup_target_free(target);
	return status;
}

static void restore_command_tell(void *owner, const struct error *err)
{
	(void)owner;
	fprintf(stderr, "deltabucketd: restore: %s (it is tried again for up to 30 seconds)\n",
		err->text);
}

static int run_from(
	const struct restore_options *options, struct backup_target *target, struct error *err)
{
	struct backup_vault vault = {
		.identities = options->identity != NULL ? &options->identities : NULL};
	struct backup_reader reader;
	if (backup_vault_find(&vault, target, err) != 0)
		return -1;
	if (vault.about.kind != ERROR_NONE)
		fprintf(stderr,
			"deltabucketd: restore: %s It goes on with what the manifests say.\n",
			vault.about.text);
	if (options->lists)
		return list_moments(options, target, err);
	begin_reading(&reader, target);
	const int status = restore_to(options, &vault, &reader, err);
	backup_reader_end(&reader);
	return status;
}

static int list_moments(
	const struct restore_options *options, struct backup_target *target, struct error *err)
{
	struct backup_moments moments;
	if (backup_moments_list(target, &moments, err) != 0)
		return -1;
	restore_report_list(&moments, options->json);
	backup_moments_release(&moments);
	return 0;
}

static void begin_reading(struct backup_reader *reader, struct backup_target *target)
{
	struct error err = {0};
	if (backup_reader_begin(reader, target, &err) != 0)
		fprintf(stderr,
			"deltabucketd: restore: The place cannot be written (%s). So nothing tells a"
			" backup to it not to prune meanwhile.\n",
			err.text);
}

static int restore_to(const struct restore_options *options, struct backup_vault *vault,
	struct backup_reader *reader, struct error *err)
{
	struct data_folder folder;
	if (data_folder_lock(&folder, file_system(), options->data, true, err) != 0)
		return -1;
	struct restore_params params = {.vault = vault,
		.folder = folder.path,
		.files = file_system(),
		.promise_ms = PROMISE_HOURS * HOUR_MS,
		.reader = reader};
	const int status = restore_chosen(options, vault, &params, err);
	data_folder_close(&folder);
	return status;
}

/* The newest moment may be pruned by a backup that had looked for readers just before this one
 * came. What was fetched is of use for the next one. */
static int restore_chosen(const struct restore_options *options, struct backup_vault *vault,
	struct restore_params *params, struct error *err)
{
	struct restore_report report = {.files = 0};
	int result = -1;
	for (int i = 0; i < CHOICES; i++) {
		restore_report_release(&report);
		*err = (struct error){.kind = ERROR_NONE};
		if (choose(options, vault->target, &params->moment, err) != 0)
			return -1;
		result = restore_run(params, &report, err);
		if (result == 0 || !report.is_gone || strcmp(options->moment, LATEST) != 0)
			break;
	}
	if (result == 0)
		restore_report_print(&params->moment, &report, options->data, options->json);
	if (result == 0 && report.lacks.count > 0)
		result = EXIT_LACKS;
	restore_report_release(&report);
	return result;
}

static int choose(const struct restore_options *options, struct backup_target *target,
	struct backup_moment *out, struct error *err)
{
	struct backup_moments moments;
	if (backup_moments_list(target, &moments, err) != 0)
		return -1;
	const int result = backup_moments_find(&moments, options->moment, out, err);
	backup_moments_release(&moments);
	return result;
}
