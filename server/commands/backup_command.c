/* Beside a running server the backup reads the data folder and asks the server for a hold. Without
 * one it opens the store itself, so that no server starts meanwhile and removes something. */
#include "server/commands/backup_command.h"

#include <stdio.h>
#include <string.h>

#include "server/commands/backup_follow.h"
#include "server/commands/backup_report.h"
#include "server/commands/command_words.h"
#include "server/commands/hold_client.h"
#include "server/commands/identity_file.h"
#include "server/commands/place_words.h"
#include "server/commands/stop_signals.h"
#include "server/data_folder.h"
#include "server/folder_owner.h"
#include "storage/open/store_open.h"

enum {
	EXIT_LACKS = 4,
	REACH_TRIES = 50,
	REACH_PAUSE_MS = 100,
	FOLLOW_KEEP = 48,
	HOUR_MS = 3600000
};

struct backup_options {
	const char *data;
	const char *place;
	const char *recipient_text;
	const char *identity;
	const char *keep_text;
	bool follows;
	bool verifies;
	bool json;
	uint64_t keep; /* 0: all */
	struct age_recipient recipient;
	struct age_identities identities;
};

static const char usage[] =
	"usage: deltabucketd backup --to PLACE [FLAGS]\n"
	"       deltabucketd backup --to PLACE --verify [--identity FILE] [--json]\n\n"
	"Ships the store to a folder or a bucket, beside the running server or without one: first everything, later\n"
	"what is new. Each run makes a moment, which deltabucketd restore can bring back. An interrupted run goes on\n"
	"where it was. Exit status 4: the moment is there, and has damaged files, which the output names;\n"
	"with --verify: pieces are lost, or files were damaged when they were backed up.\n"
	"It has no master.key and no tls/: keep copies of these elsewhere.\n\n"
	"examples:\n"
	"  deltabucketd backup --data ./data --to /mnt/backup --keep 14\n"
	"  deltabucketd backup --data ./data --to s3://backups/models --recipient age1...\n"
	"  deltabucketd backup --data ./data --to /mnt/standby --follow      # until it is stopped\n"
	"  deltabucketd backup --data ./data --to /mnt/backup --verify       # now and then\n\n"
	"flags:\n"
	"  --data DIR          the server's data folder (DELTABUCKET_DATA)\n"
	"  --to PLACE          a folder, or s3://BUCKET/PREFIX with the settings of other S3 clients: AWS_ACCESS_KEY_ID,\n"
	"                      AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_REGION, AWS_ENDPOINT_URL_S3, AWS_CA_BUNDLE\n"
	"  --recipient KEY     encrypt to this public key (age1..., from age-keygen)\n"
	"  --identity FILE     its secret key, for --verify, and to prune when the notes in DIR/backup are lost\n"
	"  --keep N            keep the last N moments and remove what only older ones need (all; with --follow 48)\n"
	"  --follow            go on shipping changes; moments of past hours are thinned to one an hour\n"
	"  --verify            read and compare all that the moments there need, and put what is damaged or missing\n"
	"                      again from the data folder; no moment is made\n"
	"  --json              one JSON object on stdout, with --follow one for each moment\n"
	"  --help, -h          this text\n";

static int parse(const struct command_line *line, struct backup_options *options, bool *out_help,
	struct error *err);
static int check(struct backup_options *options, struct error *err);
static int run(struct backup_options *options, struct error *err);
static struct backup_params params_of(
	const struct backup_options *options, const char *folder, struct hold_client *client);
static bool backup_command_goes_on(void *owner);
static void backup_command_tell(void *owner, const struct error *err);
static int run_once(const struct backup_options *options, struct error *err);
static int run_alone(
	const struct backup_options *options, const struct data_folder *folder, struct error *err);
static bool run_unchanged(const struct backup_options *options, struct hold_client *client,
	int *out_status, struct error *err);
static int run_with(
	const struct backup_options *options, struct hold_client *client, struct error *err);
static int verify(const struct backup_params *params, const struct backup_options *options,
	struct error *err);
static int make_moment(
	struct backup *backup, const struct backup_options *options, struct error *err);

int backup_command(int argument_count, char **arguments)
{
	struct backup_options options = {.keep = 0};
	struct error err = {0};
	const struct command_line line = {
		.command = "backup", .count = argument_count, .words = arguments};
	bool help = false;
	const int parsed = parse(&line, &options, &help, &err);
	if (parsed != 0)
		return command_words_end("backup", usage, help, &err);
	stop_signals_block();
	const int status = run(&options, &err);
	folder_owner_give(options.data); /* beside a server nobody else gives the notes away */
	age_identities_wipe(&options.identities);
	if (status < 0)
		fprintf(stderr, "deltabucketd: backup: %s\n", err.text);
	return status < 0 ? COMMAND_FAILED : status;
}

static int parse(const struct command_line *line, struct backup_options *options, bool *out_help,
	struct error *err)
{
	const struct command_flag flags[] = {
		{.name = "--data", .variable = "DELTABUCKET_DATA", .text = &options->data},
		{.name = "--to", .text = &options->place},
		{.name = "--recipient", .text = &options->recipient_text},
		{.name = "--identity", .text = &options->identity},
		{.name = "--keep", .text = &options->keep_text},
		{.name = "--follow", .switched = &options->follows},
		{.name = "--verify", .switched = &options->verifies},
		{.name = "--json", .switched = &options->json}};
	if (command_words_read_flags(
		    line, flags, sizeof(flags) / sizeof(flags[0]), out_help, err) != 0 ||
		command_words_need_data(options->data, err) != 0)
		return -1;
	return check(options, err);
}

static int check(struct backup_options *options, struct error *err)
{
	if (options->place == NULL || options->place[0] == '\0')
		return error_set(err, ERROR_INVALID,
			"name the place with --to, a folder or s3://BUCKET/PREFIX");
	if (options->verifies && (options->follows || options->keep_text != NULL))
		return error_set(err, ERROR_INVALID, "--verify goes without --follow and --keep");
	if (place_words_check_to(options->place, options->data, err) != 0)
		return -1;
	options->keep = options->follows ? FOLLOW_KEEP : 0;
	if (options->keep_text != NULL &&
		(!span_parse_u64(span_text(options->keep_text), &options->keep) ||
			options->keep == 0))
		return error_set(err, ERROR_INVALID, "--keep takes a number from 1 on, not '%.60s'",
			options->keep_text);
	return options->recipient_text == NULL
		? 0
		: age_recipient_parse(span_text(options->recipient_text), &options->recipient, err);
}

static int run(struct backup_options *options, struct error *err)
{
	if (options->identity != NULL &&
		identity_file_read(options->identity, &options->identities, err) != 0)
		return -1;
	struct hold_client client = {.folder = options->data};
	if (!options->follows)
		return run_once(options, err);
	const struct backup_params params = params_of(options, options->data, &client);
	return backup_follow(&params, options->json, err);
}

static struct backup_params params_of(
	const struct backup_options *options, const char *folder, struct hold_client *client)
{
	return (struct backup_params){.folder = folder,
		.place = options->place,
		.files = file_system(),
		.recipient = options->recipient_text != NULL ? &options->recipient : NULL,
		.identities = options->identity != NULL ? &options->identities : NULL,
		.holder = hold_client_holder(client),
		.goes_on = backup_command_goes_on,
		.tell = backup_command_tell,
		.keep = options->keep,
		.spacing_ms = options->follows ? HOUR_MS : 0};
}

static bool backup_command_goes_on(void *owner)
{
	(void)owner;
	return !stop_signals_came();
}

static void backup_command_tell(void *owner, const struct error *err)
{
	(void)owner;
	fprintf(stderr, "deltabucketd: backup: %s (it is tried again)\n", err->text);
}

/* A server that has the folder may be starting or stopping, and not answer yet. */
static int run_once(const struct backup_options *options, struct error *err)
{
	struct hold_client client = {.folder = options->data};
	for (int i = 0;; i++) {
		struct data_folder folder;
		int status = -1;
		*err = (struct error){.kind = ERROR_NONE};
		if (data_folder_lock(&folder, file_system(), options->data, false, err) == 0) {
			status = run_alone(options, &folder, err);
			data_folder_close(&folder);
			return status;
		}
		if (err->kind != ERROR_BUSY)
			return -1;
		status = run_with(options, &client, err);
		if (status >= 0 || !client.is_away || i == REACH_TRIES || stop_signals_came())
			return status;
		stop_signals_sleep(REACH_PAUSE_MS);
	}
}

/* A start is a change: where the newest moment is what lies there, nothing is started. */
static int run_alone(
	const struct backup_options *options, const struct data_folder *folder, struct error *err)
{
	struct hold_client alone = {.folder = folder->path, .is_alone = true};
	int outcome = -1;
	if (!options->verifies && run_unchanged(options, &alone, &outcome, err))
		return outcome;
	const struct store_options store_options = {.folder = folder->path};
	struct hold_client client = {
		.folder = folder->path, .store = store_open(&store_options, err)};
	if (client.store == NULL)
		return -1;
	const int status = run_with(options, &client, err);
	store_close(client.store);
	return status;
}

/* Whether that was all there was to do. */
static bool run_unchanged(const struct backup_options *options, struct hold_client *client,
	int *out_status, struct error *err)
{
	const struct backup_params params = params_of(options, client->folder, client);
	struct backup *backup = backup_open(&params, err);
	const bool is_current = backup == NULL || backup_is_current(backup);
	if (backup != NULL && is_current)
		*out_status = make_moment(backup, options, err);
	backup_close(backup);
	return is_current;
}

static int run_with(
	const struct backup_options *options, struct hold_client *client, struct error *err)
{
	const struct backup_params params = params_of(options, client->folder, client);
	if (options->verifies)
		return verify(&params, options, err);
	struct backup *backup = backup_open(&params, err);
	if (backup == NULL)
		return -1;
	const int status = make_moment(backup, options, err);
	backup_close(backup);
	return status;
}

static int verify(
	const struct backup_params *params, const struct backup_options *options, struct error *err)
{
	struct backup_verified verified;
	int status = backup_verify(params, &verified, err);
	if (status == 0)
		backup_report_print_verified(&verified, options->json);
	if (status == 0 && verified.lost.count + verified.damaged.count > 0)
		status = EXIT_LACKS;
	if (verified.needs_identity) {
		fprintf(stderr, "deltabucketd: backup: %s\n", err->text);
		status = COMMAND_USAGE;
	}
	backup_verified_release(&verified);
	return status;
}

static int make_moment(
	struct backup *backup, const struct backup_options *options, struct error *err)
{
	struct backup_report report;
	struct backup_pruned pruned = {.moments = 0};
	const bool prunes = options->keep > 0;
	if (backup_round(backup, &report, err) != 0)
		return -1;
	const int result = prunes ? backup_prune(backup, &pruned, err) : 0;
	backup_report_print(&report, prunes ? &pruned : NULL, options->json);
	backup_report_tell_unnoted(&report);
	if (pruned.reader[0] != '\0')
		backup_report_tell_reader(&pruned);
	return result != 0 ? -1 : report.lacks->count > 0 ? EXIT_LACKS : 0;
}
