/* The file `restoring` names the moment: it is written first and goes last, and tells a folder that
 * a restore began from one that has a store. */
#include "storage/backup/restore.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "storage/backup/backup_fetch.h"
#include "storage/backup/backup_mark.h"
#include "storage/packs/set_aside.h"

/* So many starts can be lost behind the moment: the life of the restored store is above all of
 * them, so nothing that is left of the lost one ever counts as newer. */
enum { LOST_LIVES = 4096 };
enum { PATH_BYTES = 4096, NAME_BYTES = 300, FILE_MODE = 0600, MARK_MAX_BYTES = 256 };

static const char INDEX[] = ".index";

struct restoring {
	const struct restore_params *params;
	struct restore_report *out;
	struct backup_manifest manifest;
	char mark[BACKUP_MOMENT_BYTES]; /* the name of the moment */
	struct backup_fetch fetch;
	const char *file;  /* the path in the data folder of the one that is fetched */
	bool lacks_pieces; /* that file */
};
typedef int take_entry(struct restoring *restoring, const char *name, struct error *err);

static int read_manifest(struct restoring *restoring, struct error *err);
static int advise(struct error *err);
static int begin(struct restoring *restoring, struct error *err);
static void path_in(const struct restoring *restoring, const char *name, char out[PATH_BYTES]);
static int check_is_ours(struct restoring *restoring, struct error *err);
static int change_moment(struct restoring *restoring, struct error *err);
static int each_entry(
	struct restoring *restoring, const char *folder, take_entry *take, struct error *err);
static int set_packs_aside(struct restoring *restoring, const char *folder, struct error *err);
static int set_unnamed_aside(struct restoring *restoring, const char *name, struct error *err);
static bool has_store(const struct restoring *restoring);
static int fetch_all(struct restoring *restoring, struct error *err);
static int remove_unnamed(struct restoring *restoring, const char *name, struct error *err);
static bool is_named(const struct restoring *restoring, const char *name);
static int fetch_file(
	struct restoring *restoring, const struct backup_file *file, struct error *err);
static void restoring_take_lack(void *owner, const struct error *why);
static void add_lack(struct restoring *restoring, const char *why);
static int restore_take_mark(void *taker, const char *key, int64_t changed_ms, struct error *err);
static int find_damaged(struct restoring *restoring, struct error *err);
static void advise_index(
	const struct source_file *pack, const char *folder, struct error *why);
static int check_is_there(struct restoring *restoring, struct error *err);
static int make_catalog(struct restoring *restoring, struct error *err);
static int end(struct restoring *restoring, struct error *err);

int restore_run(const struct restore_params *params, struct restore_report *out, struct error *err)
{
	struct restoring restoring = {.params = params,
		.out = out,
		.fetch = {.vault = params->vault, .files = params->files, .owner = &restoring}};
	*out = (struct restore_report){.files = 0};
	backup_moment_print(&params->moment, restoring.mark);
	int result = read_manifest(&restoring, err);
	if (result == 0)
		result = begin(&restoring, err);
	if (result == 0 && !out->was_done)
		result = fetch_all(&restoring, err);
	if (result == 0 && !out->was_done)
		result = backup_marks_each(
			params->vault->target, restore_take_mark, &restoring, err);
	if (result == 0 && !out->was_done)
		result = make_catalog(&restoring, err);
	if (result == 0 && !out->was_done)
		result = find_damaged(&restoring, err);
	if (result == 0)
		result = end(&restoring, err);
	backup_fetch_release(&restoring.fetch);
	backup_manifest_release(&restoring.manifest);
	return result;
}

void restore_report_release(struct restore_report *report)
{
	backup_lacks_release(&report->lacks);
	*report = (struct restore_report){.files = 0};
}

static int read_manifest(struct restoring *restoring, struct error *err)
{
	const struct restore_params *params = restoring->params;
	if (backup_vault_manifest(params->vault, &params->moment, &restoring->manifest, err) == 0)
		return 0;
	if (err->kind == ERROR_NOT_FOUND)
		(void)check_is_there(restoring, err);
	return err->kind == ERROR_CORRUPT ? advise(err) : -1;
}

static int advise(struct error *err)
{
	const struct error why = *err;
	return error_set(err, ERROR_CORRUPT,
		"%.300s This moment cannot be restored: take another one with --moment (--list shows"
		" them), or mend the place from the store with `deltabucketd backup --verify`.",
		why.text);
}

static int begin(struct restoring *restoring, struct error *err)
{
	char path[PATH_BYTES];
	path_in(restoring, "restoring", path);
	if (file_exists(path))
		return check_is_ours(restoring, err);
	if (has_store(restoring))
		return error_set(err, ERROR_EXISTS,
			"There is a store in %s. Restore to an empty folder.",
			restoring->params->folder);
	return file_publish(
		restoring->params->files, path, span_text(restoring->mark), FILE_MODE, err);
}

static void path_in(const struct restoring *restoring, const char *name, char out[PATH_BYTES])
{
	snprintf(out, PATH_BYTES, "%s/%s", restoring->params->folder, name);
}

/* A catalog beside the mark is the last thing that this restore has put in place, and a server may
 * have used it since. */
static int check_is_ours(struct restoring *restoring, struct error *err)
{
	char path[PATH_BYTES];
	struct buffer text;
	path_in(restoring, "catalog.db", path);
	restoring->out->was_done = file_exists(path);
	path_in(restoring, "restoring", path);
	buffer_init(&text, MARK_MAX_BYTES);
	int result = file_read_all(path, &text, err);
	const bool is_same = result == 0 && span_equal_text(buffer_span(&text), restoring->mark);
	if (result == 0 && !is_same && restoring->out->was_done)
		result = error_set(err, ERROR_EXISTS,
			"There is a store in %s, restored from %.80s. Restore to an empty folder.",
			restoring->params->folder, buffer_text(&text));
	else if (result == 0 && !is_same)
		result = change_moment(restoring, err);
	buffer_release(&text);
	return result;
}

/* Each piece of what lies there is compared again. What the other moment alone needs is set
 * aside: a rebuild would take it for content of the store, and nothing says that the place still
 * has it. */
static int change_moment(struct restoring *restoring, struct error *err)
{
	const struct restore_params *params = restoring->params;
	char path[PATH_BYTES];
	path_in(restoring, "restoring", path);
	if (each_entry(restoring, "journal", set_unnamed_aside, err) != 0 ||
		each_entry(restoring, "packs", set_packs_aside, err) != 0)
		return -1;
	return file_publish(params->files, path, span_text(restoring->mark), FILE_MODE, err);
}

/* `take` gets the path of each entry below the data folder. */
static int each_entry(
	struct restoring *restoring, const char *folder, take_entry *take, struct error *err)
{
	char path[PATH_BYTES];
	char **names;
	size_t count;
	int result = 0;
	path_in(restoring, folder, path);
	if (!file_exists(path))
		return 0;
	if (file_list(path, &names, &count, err) != 0)
		return -1;
	for (size_t i = 0; i < count && result == 0; i++) {
		char name[PATH_BYTES];
		snprintf(name, sizeof(name), "%s/%s", folder, names[i]);
		result = take(restoring, name, err);
	}
	file_names_free(names, count);
	return result;
}

static int set_packs_aside(struct restoring *restoring, const char *folder, struct error *err)
{
	return each_entry(restoring, folder, set_unnamed_aside, err);
}

static int set_unnamed_aside(struct restoring *restoring, const char *name, struct error *err)
{
	const struct restore_params *params = restoring->params;
	char path[PATH_BYTES];
	path_in(restoring, name, path);
	return is_named(restoring, name)
		? 0
		: set_aside_take(params->files, params->folder, path, err);
}

static bool has_store(const struct restoring *restoring)
{
	static const char *const names[] = {
		"catalog.db", "catalog.db-wal", "packs", "journal", "acknowledged", "set-aside"};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char path[PATH_BYTES];
		path_in(restoring, names[i], path);
		if (file_exists(path))
			return true;
	}
	return false;
}

static int fetch_all(struct restoring *restoring, struct error *err)
{
	/* An interrupted run may have left the snapshot that a rebuild makes. */
	if (each_entry(restoring, "journal", remove_unnamed, err) != 0)
		return -1;
	for (size_t i = 0; i < restoring->manifest.count; i++) {
		if (restoring->params->reader != NULL)
			backup_reader_renew(restoring->params->reader);
		if (fetch_file(restoring, &restoring->manifest.files[i], err) != 0)
			return -1;
	}
	return 0;
}

static int remove_unnamed(struct restoring *restoring, const char *name, struct error *err)
{
	const struct file_ops *files = restoring->params->files;
	char path[PATH_BYTES];
	path_in(restoring, name, path);
	return is_named(restoring, name) || files->unlink(files, path) == 0
		? 0
		: error_set_errno(err, "%s cannot be removed", path);
}

static bool is_named(const struct restoring *restoring, const char *name)
{
	const struct backup_manifest *manifest = &restoring->manifest;
	for (size_t i = 0; i < manifest->count; i++) {
		char path[BACKUP_NAME_BYTES];
		if (backup_key_path(manifest->files[i].key, path) && strcmp(path, name) == 0)
			return true;
	}
	return false;
}

/* What the backup does not have of a pack is not made up: the catalog then names what is not there.
 * The journal must be whole. */
static int fetch_file(
	struct restoring *restoring, const struct backup_file *file, struct error *err)
{
	char name[BACKUP_NAME_BYTES];
	char path[PATH_BYTES];
	const uint64_t covered = backup_file_covered(file);
	if (!backup_key_path(file->key, name))
		return 0;
	const bool is_pack = strncmp(name, "packs/", 6) == 0;
	path_in(restoring, name, path);
	restoring->file = name;
	restoring->lacks_pieces = false;
	restoring->fetch.take_lack = is_pack ? restoring_take_lack : NULL;
	restoring->out->files++;
	restoring->out->bytes += covered;
	if (covered < file->length)
		add_lack(restoring, "It could not be read whole when it was backed up.");
	const int result = backup_fetch_file(&restoring->fetch, file, path, err);
	restoring->out->fetched = restoring->fetch.fetched;
	if (result != 0 && err->kind != ERROR_CORRUPT)
		return -1;
	if ((result != 0 || restoring->lacks_pieces) && check_is_there(restoring, err) != 0)
		return -1;
	return result == 0 ? 0 : advise(err);
}

static void restoring_take_lack(void *owner, const struct error *why)
{
	struct restoring *restoring = owner;
	add_lack(restoring, why->text);
	restoring->lacks_pieces = true;
}

static void add_lack(struct restoring *restoring, const char *why)
{
	backup_lacks_add(&restoring->out->lacks, restoring->file, why);
}

/* A moment that was pruned meanwhile goes before its pieces. `err` is kept when it was not. */
static int check_is_there(struct restoring *restoring, struct error *err)
{
	const struct restore_params *params = restoring->params;
	struct backup_moments moments;
	struct backup_moment found;
	struct error why = {0};
	if (backup_moments_list(params->vault->target, &moments, &why) != 0) {
		*err = why;
		return -1;
	}
	restoring->out->is_gone =
		backup_moments_find(&moments, restoring->mark, &found, &why) != 0;
	backup_moments_release(&moments);
	return !restoring->out->is_gone
		? 0
		: error_set(err, ERROR_NOT_FOUND,
			  "The moment %s was pruned while it was restored. Take one that --list shows.",
			  restoring->mark);
}

/* The index of a pack that describes itself wrongly: with it the pack is read all the same. One
 * that cannot be read is as if there were none. */
static int restore_take_mark(void *taker, const char *key, int64_t changed_ms, struct error *err)
{
	const struct restoring *restoring = taker;
	const struct restore_params *params = restoring->params;
	char name[BACKUP_NAME_BYTES];
	char path[PATH_BYTES];
	struct buffer index;
	struct error ignored;
	int result = 0;
	(void)changed_ms;
	if (!backup_key_path(key, name) || !is_named(restoring, name))
		return 0;
	path_in(restoring, name, path);
	memcpy(strrchr(path, '.'), INDEX, sizeof(INDEX));
	buffer_init(&index, BACKUP_PIECE_MAX_BYTES);
	if (backup_mark_get(params->vault, key, &index, &ignored) == 0 && index.len > 0)
		result = file_publish(params->files, path, buffer_span(&index), FILE_MODE, err);
	buffer_release(&index);
	return result;
}

/* What came whole and was damaged when it was backed up. */
static int find_damaged(struct restoring *restoring, struct error *err)
{
	const char *folder = restoring->params->folder;
	struct backup_source packs;
	int result = backup_source_read_packs(folder, &packs, err);
	for (size_t i = 0; i < packs.count && result == 0; i++) {
		const struct source_file *pack = &packs.files[i];
		char name[BACKUP_NAME_BYTES];
		struct error why = {0};
		restoring->file = name;
		if (!backup_key_path(pack->key, name))
			continue;
		if (source_file_check(pack, folder, &why) != 0)
			advise_index(pack, folder, &why);
		else if (pack->damaged > 0)
			error_set(&why, ERROR_CORRUPT,
				"%u chunks of it were known to be damaged in the store that was backed"
				" up; `deltabucketd scrub` tells whether they are here.",
				pack->damaged);
		if (why.kind != ERROR_NONE)
			add_lack(restoring, why.text);
	}
	backup_source_release(&packs);
	return result;
}

static void advise_index(const struct source_file *pack, const char *folder, struct error *why)
{
	struct buffer index;
	struct error ignored;
	buffer_init(&index, BACKUP_PIECE_MAX_BYTES);
	if (source_file_index(pack, folder, &index, &ignored) == 0)
		error_advise(why,
			"it is read with its index file, which came back, and `deltabucketd scrub` mends"
			" it");
	buffer_release(&index);
}

/* The journal leads to the last change of the moment and no further. */
static int make_catalog(struct restoring *restoring, struct error *err)
{
	const struct restore_params *params = restoring->params;
	struct rebuild_report *report = &restoring->out->catalog;
	const struct rebuild_params rebuild = {.folder = params->folder,
		.files = params->files,
		.promise_ms = params->promise_ms,
		.expects_change = restoring->manifest.moment.change,
		.lives = LOST_LIVES};
	return rebuild_run(&rebuild, report, err);
}

/* Where a power cut brings the mark back, it stands beside a whole store. */
static int end(struct restoring *restoring, struct error *err)
{
	const struct file_ops *files = restoring->params->files;
	char path[PATH_BYTES];
	struct error ignored;
	path_in(restoring, "restoring", path);
	if (files->unlink(files, path) != 0 && errno != ENOENT)
		return error_set_errno(err, "%s cannot be removed", path);
	(void)file_sync_name(files, path, &ignored);
	return 0;
}
