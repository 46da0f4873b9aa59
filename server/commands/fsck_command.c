/* Findings are printed as they are found. A repair is followed by a second check, which proves it:
 * what that check finds is what is left. */
#include "server/commands/fsck_command.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/memory.h"
#include "server/commands/command_words.h"
#include "server/commands/finding_print.h"
#include "server/commands/identity_file.h"
#include "server/data_folder.h"
#include "storage/backup/backup_reader.h"
#include "storage/fsck/fsck_repair.h"

enum { STATUS_REPAIRED = 1, STATUS_DAMAGE = 4, STATUS_UNCHECKED = 8 };
enum { JSON_MAX_BYTES = 256 * 1024 * 1024 };

struct fsck_options {
	const char *data;
	bool is_online;
	bool is_quick;
	bool repairs;
	bool is_dry_run;
	bool json;
	const char *backup;
	const char *identity;
	const char *master_key;
};
struct fsck_run {
	const struct fsck_options *options;
	struct fsck_repair *repair;
	bool can_repair; /* something that was found, or fetch packs */
	struct age_identities identities;
	struct backup_target *target; /* with --backup */
	struct backup_reader reader;  /* keeps backups to that place from pruning meanwhile */
	struct backup_vault vault;
	struct log *log;    /* on stderr: what a repair could not do */
	struct buffer text; /* of the JSON object */
	struct json_writer writer;
	struct fsck_report first;
	struct fsck_report last; /* after a repair */
};

static const char usage[] =
	"usage: deltabucketd fsck [FLAGS]\n\n"
	"Checks the whole store: catalog, packs and every record in them, chunk index, journal, steps, and what was\n"
	"set aside. Each finding names the keys, versions and steps that it touches. Without --repair nothing is\n"
	"changed; SQLite may leave files of its own beside its databases (-wal, -shm). The server must be stopped,\n"
	"or --online given.\n\n"
	"examples:\n"
	"  deltabucketd fsck --data ./data\n"
	"  deltabucketd fsck --data ./data --online --quick     # beside a running server, without reading the packs\n"
	"  deltabucketd fsck --data ./data --repair --dry-run   # what a repair would do\n"
	"  deltabucketd fsck --data ./data --repair\n"
	"  deltabucketd fsck --data ./data --repair --backup /mnt/backup\n\n"
	"flags:\n"
	"  --data DIR         the server's data folder (DELTABUCKET_DATA)\n"
	"  --online           beside a running server: reads only, in short snapshots\n"
	"  --quick            do not read every record of every pack\n"
	"  --repair           mend what can be mended without loss, and check again\n"
	"  --backup PLACE     with --repair: fetch pack files that are damaged or missing from this backup\n"
	"  --identity FILE    opens an encrypted backup\n"
	"  --master-key FILE  as for the server (DELTABUCKET_MASTER_KEY)\n"
	"  --dry-run          with --repair: change nothing, and say of each finding what would be done\n"
	"  --json             one JSON object on stdout\n"
	"  --help, -h         this text\n\n"
	"exit status: 0 clean, 1 everything was repaired, 2 wrong usage, 4 damage or faults are left, 8 not checked\n";

static int parse(const struct command_line *line, struct fsck_options *options, bool *out_help,
	struct error *err);
static int check_options(const struct fsck_options *options, struct error *err);
static int run(struct fsck_run *run, struct error *err);
static int check_and_repair(struct fsck_run *run, const char *folder, struct error *err);
static int open_backup(struct fsck_run *run, struct error *err);
static int check(struct fsck_run *run, const char *folder, const char *name,
	struct fsck_report *out, struct error *err);
static void fsck_command_take(void *owner, const struct finding *finding);
static bool needs_repair(const struct fsck_report *report);
static int preview(struct fsck_run *run, struct error *err);
static void fsck_command_take_return(void *owner, const char *subject, bool has);
static int repair_and_check(struct fsck_run *run, const char *folder, struct error *err);
static void print_end(struct fsck_run *run, int status, const struct error *err);

int fsck_command(int argument_count, char **arguments)
{
	struct fsck_options options = {0};
	struct error err = {0};
	const struct command_line line = {
		.command = "fsck", .count = argument_count, .words = arguments};
	bool help = false;
	if (parse(&line, &options, &help, &err) != 0)
		return command_words_refuse("fsck", usage, help, options.json, &err);
	struct fsck_run fsck = {.options = &options};
	buffer_init(&fsck.text, JSON_MAX_BYTES);
	json_writer_init(&fsck.writer, &fsck.text);
	json_writer_object(&fsck.writer, NULL);
	fsck.log = log_new(STDERR_FILENO, LOG_WARNING, false, clock_system());
	const int status = run(&fsck, &err);
	if (err.kind != ERROR_NONE)
		fprintf(stderr, "deltabucketd: fsck: %s\n", err.text);
	print_end(&fsck, status, &err);
	fsck_repair_free(fsck.repair);
	backup_reader_end(&fsck.reader);
	backup_target_free(fsck.target);
	age_identities_wipe(&fsck.identities);
	log_free(fsck.log);
	buffer_release(&fsck.text);
	return status;
}

static int parse(const struct command_line *line, struct fsck_options *options, bool *out_help,
	struct error *err)
{
	const struct command_flag flags[] = {
		{.name = "--data", .variable = "DELTABUCKET_DATA", .text = &options->data},
		{.name = "--online", .switched = &options->is_online},
		{.name = "--quick", .switched = &options->is_quick},
		{.name = "--repair", .switched = &options->repairs},
		{.name = "--backup", .text = &options->backup},
		{.name = "--identity", .text = &options->identity},
		{.name = "--master-key",
			.variable = "DELTABUCKET_MASTER_KEY",
			.text = &options->master_key},
		{.name = "--dry-run", .switched = &options->is_dry_run},
		{.name = "--json", .switched = &options->json}};
	if (command_words_read_flags(
		    line, flags, sizeof(flags) / sizeof(flags[0]), out_help, err) != 0 ||
		command_words_need_data(options->data, err) != 0)
		return -1;
	return check_options(options, err);
}

static int check_options(const struct fsck_options *options, struct error *err)
{
	if (options->repairs && options->is_online)
		return error_set(err, ERROR_INVALID,
			"--repair needs the store for itself: stop the server and leave out --online");
	if (options->is_dry_run && !options->repairs)
		return error_set(err, ERROR_INVALID, "--dry-run goes with --repair");
	return options->backup != NULL && !options->repairs
		? error_set(err, ERROR_INVALID, "--backup goes with --repair")
		: 0;
}

/* Returns the exit status. Without a server the check is the same with --online. */
static int run(struct fsck_run *run, struct error *err)
{
	struct data_folder folder;
	const struct fsck_options *options = run->options;
	if (data_folder_lock(&folder, file_system(), options->data, false, err) == 0) {
		const int status = check_and_repair(run, folder.path, err);
		data_folder_close(&folder);
		return status;
	}
	if (err->kind != ERROR_BUSY)
		return STATUS_UNCHECKED;
	if (!options->is_online) {
		error_advise(err, "stop it first, or check beside it with --online");
		return STATUS_UNCHECKED;
	}
	*err = (struct error){.kind = ERROR_NONE};
	return check_and_repair(run, options->data, err);
}

static int check_and_repair(struct fsck_run *run, const char *folder, struct error *err)
{
	run->repair = fsck_repair_new(folder, file_system(), run->log);
	if (run->options->backup != NULL && open_backup(run, err) != 0)
		return STATUS_UNCHECKED;
	if (check(run, folder, "findings", &run->first, err) != 0)
		return STATUS_UNCHECKED;
	if (!needs_repair(&run->first))
		return 0;
	if (run->options->is_dry_run && run->target != NULL && preview(run, err) != 0)
		return STATUS_UNCHECKED;
	return run->options->repairs && !run->options->is_dry_run
		? repair_and_check(run, folder, err)
		: STATUS_DAMAGE;
}

/* Before anything is checked or changed. */
static int open_backup(struct fsck_run *run, struct error *err)
{
	const struct fsck_options *options = run->options;
	if (options->identity != NULL &&
		identity_file_read(options->identity, &run->identities, err) != 0)
		return -1;
	run->vault.identities = options->identity != NULL ? &run->identities : NULL;
	run->target = backup_target_open(options->backup, false, file_system(), err);
	if (run->target == NULL || backup_vault_find(&run->vault, run->target, err) != 0)
		return -1;
	if (run->vault.is_sealed && run->vault.identities == NULL)
		return error_set(err, ERROR_DENIED,
			"The backup %s is encrypted; name the file with its secret key with --identity.",
			options->backup);
	struct error read_only;
	(void)backup_reader_begin(&run->reader, run->target, &read_only);
	fsck_repair_use(run->repair, &run->vault);
	run->can_repair = true;
	return 0;
}

static int check(struct fsck_run *run, const char *folder, const char *name,
	struct fsck_report *out, struct error *err)
{
	char *const key = run->options->master_key != NULL
		? memory_copy_text(run->options->master_key)
		: data_folder_path(folder, "master.key");
	const struct fsck_params params = {.folder = folder,
		.master_key = key,
		.read_key = data_folder_read_key,
		.files = file_system(),
		.is_online = run->options->is_online,
		.is_quick = run->options->is_quick,
		.found = fsck_command_take,
		.owner = run};
	json_writer_array(&run->writer, name);
	const int result = fsck_run(&params, out, err);
	json_writer_end(&run->writer, ']');
	free(key);
	return result;
}

static void fsck_command_take(void *owner, const struct finding *finding)
{
	struct fsck_run *run = owner;
	fsck_repair_add(run->repair, finding);
	run->can_repair |= finding_is_repaired(finding->kind);
	if (run->options->json)
		finding_print_json(finding, &run->writer);
	else
		finding_print_text(finding, run->options->is_dry_run);
}

static bool needs_repair(const struct fsck_report *report)
{
	return report->findings[FINDING_FAULT] + report->findings[FINDING_DAMAGE] > 0;
}

/* What the backup would give. */
static int preview(struct fsck_run *run, struct error *err)
{
	json_writer_array(&run->writer, "backup");
	const int result = fsck_repair_preview(run->repair, fsck_command_take_return, run, err);
	json_writer_end(&run->writer, ']');
	return result;
}

static void fsck_command_take_return(void *owner, const char *subject, bool has)
{
	struct fsck_run *run = owner;
	if (!run->options->json) {
		printf("backup: %s: %s\n", subject,
			has ? "with --repair its pack file is fetched"
			    : "it does not have all of the pack file");
		return;
	}
	json_writer_object(&run->writer, NULL);
	json_writer_text(&run->writer, "subject", span_text(subject));
	json_writer_bool(&run->writer, "has", has);
	json_writer_end(&run->writer, '}');
}

static int repair_and_check(struct fsck_run *run, const char *folder, struct error *err)
{
	if (fsck_repair_run(run->repair, err) != 0)
		return STATUS_DAMAGE;
	if (!run->options->json)
		printf(run->can_repair ? "repaired; what is left:\n"
				       : "no repair mends this; what is left:\n");
	if (check(run, folder, "left", &run->last, err) != 0)
		return STATUS_UNCHECKED;
	return needs_repair(&run->last) ? STATUS_DAMAGE : STATUS_REPAIRED;
}

static void print_end(struct fsck_run *run, int status, const struct error *err)
{
	static const char *const results[] = {[0] = "clean",
		[STATUS_REPAIRED] = "repaired",
		[STATUS_DAMAGE] = "damaged",
		[STATUS_UNCHECKED] = "unchecked"};
	const struct fsck_report *report = run->last.change > 0 ? &run->last : &run->first;
	if (!run->options->json) {
		if (status != STATUS_UNCHECKED)
			fsck_report_print_text(report);
		printf("%s\n", results[status]);
		return;
	}
	fsck_report_print_json(report, &run->writer);
	json_writer_text(&run->writer, "result", span_text(results[status]));
	if (err->kind != ERROR_NONE)
		command_words_print_error(&run->writer, err);
	json_writer_end(&run->writer, '}');
	if (buffer_failed(&run->text))
		fprintf(stderr,
			"deltabucketd: fsck: the JSON object is cut off: it is too large\n");
	printf("%s\n", buffer_text(&run->text));
}
