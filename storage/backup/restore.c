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

/* So many starts can be lost behind the moment: the life of the restored store is above all of
 * them, so nothing that is left of the lost one ever counts as newer. */
enum { LOST_LIVES = 4096 };
enum { PATH_BYTES = 4096, FILE_MODE = 0600, MARK_MAX_BYTES = 256 };

struct restoring {
	const struct restore_params *params;
	struct restore_report *out;
	struct backup_manifest manifest;
	char mark[BACKUP_MOMENT_BYTES]; /* the name of the moment */
	struct backup_fetch fetch;
};

static int begin(struct restoring *restoring, struct error *err);
static void path_in(const struct restoring *restoring, const char *name, char out[PATH_BYTES]);
static int check_is_ours(const struct restoring *restoring, struct error *err);
static bool has_store(const struct restoring *restoring);
static int fetch_all(struct restoring *restoring, struct error *err);
static int clear_journal(const struct restoring *restoring, struct error *err);
static bool is_named(const struct restoring *restoring, const char *name);
static int fetch_file(
	struct restoring *restoring, const struct backup_file *file, struct error *err);
static int make_catalog(struct restoring *restoring, struct error *err);
static int end(struct restoring *restoring, struct error *err);

int restore_run(const struct restore_params *params, struct restore_report *out, struct error *err)
{
	struct restoring restoring = {.params = params,
		.out = out,
		.fetch = {.vault = params->vault, .files = params->files}};
	*out = (struct restore_report){.files = 0};
	backup_moment_print(&params->moment, restoring.mark);
	int result =
		backup_vault_manifest(params->vault, &params->moment, &restoring.manifest, err);
	if (result == 0)
		result = begin(&restoring, err);
	if (result == 0 && !out->was_done)
		result = fetch_all(&restoring, err);
	if (result == 0 && !out->was_done)
		result = make_catalog(&restoring, err);
	if (result == 0)
		result = end(&restoring, err);
	backup_fetch_release(&restoring.fetch);
	backup_manifest_release(&restoring.manifest);
	return result;
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
static int check_is_ours(const struct restoring *restoring, struct error *err)
{
	char path[PATH_BYTES];
	struct buffer text;
	path_in(restoring, "catalog.db", path);
	restoring->out->was_done = file_exists(path);
	path_in(restoring, "restoring", path);
	buffer_init(&text, MARK_MAX_BYTES);
	int result = file_read_all(path, &text, err);
	if (result == 0 && !span_equal_text(buffer_span(&text), restoring->mark))
		result = error_set(err, ERROR_EXISTS,
			"A restore of %.80s to %s was not ended. Repeat that one, or empty the folder.",
			buffer_text(&text), restoring->params->folder);
	buffer_release(&text);
	return result;
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
	if (clear_journal(restoring, err) != 0)
		return -1;
	for (size_t i = 0; i < restoring->manifest.count; i++)
		if (fetch_file(restoring, &restoring->manifest.files[i], err) != 0)
			return -1;
	return 0;
}

/* An interrupted run may have left the snapshot that a rebuild makes. */
static int clear_journal(const struct restoring *restoring, struct error *err)
{
	const struct file_ops *files = restoring->params->files;
	char folder[PATH_BYTES];
	char **names;
	size_t count;
	int result = 0;
	path_in(restoring, "journal", folder);
	if (!file_exists(folder))
		return 0;
	if (file_list(folder, &names, &count, err) != 0)
		return -1;
	for (size_t i = 0; i < count && result == 0; i++) {
		char path[2 * PATH_BYTES];
		snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
		if (!is_named(restoring, names[i]) && files->unlink(files, path) != 0)
			result = error_set_errno(err, "%s cannot be removed", path);
	}
	file_names_free(names, count);
	return result;
}

static bool is_named(const struct restoring *restoring, const char *name)
{
	const struct backup_manifest *manifest = &restoring->manifest;
	for (size_t i = 0; i < manifest->count; i++) {
		char path[BACKUP_NAME_BYTES];
		if (backup_key_path(manifest->files[i].key, path) &&
			strncmp(path, "journal/", 8) == 0 && strcmp(path + 8, name) == 0)
			return true;
	}
	return false;
}

/* A file that the backup does not have whole is not made up: the catalog then names what is not
 * there, as it did in the store. */
static int fetch_file(
	struct restoring *restoring, const struct backup_file *file, struct error *err)
{
	char name[BACKUP_NAME_BYTES];
	char path[PATH_BYTES];
	restoring->out->files++;
	restoring->out->bytes += backup_file_covered(file);
	restoring->out->lacking += backup_file_covered(file) < file->length;
	if (!backup_key_path(file->key, name))
		return 0;
	path_in(restoring, name, path);
	const int result = backup_fetch_file(&restoring->fetch, file, path, err);
	restoring->out->fetched = restoring->fetch.fetched;
	return result;
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
