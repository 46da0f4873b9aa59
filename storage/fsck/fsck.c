/* The log comes first: SQLite would silently pass over what follows a damaged frame. Where the log
 * needs mending, the check reads a mended copy of the catalog. */
#include "storage/fsck/fsck.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "storage/core/store_row.h"
#include "storage/db/log_walk.h"
#include "storage/fsck/fsck_internal.h"
#include "storage/packs/place_note.h"
#include "storage/start/catalog.h"
#include "storage/start/catalog_copy.h"
#include "storage/start/catalog_log.h"
#include "storage/start/migration_list.h"

static int (*const checks[])(struct fsck *fsck, struct error *err) = {fsck_catalog, fsck_links,
	fsck_versions, fsck_rights, fsck_steps, fsck_packs, fsck_files, fsck_chunk_index,
	fsck_journal};

static int check_store(struct fsck *fsck, struct catalog_copy **copy, struct error *err);
static int advise_rebuild(struct error *err);
static int open_catalog(struct fsck *fsck, struct catalog_copy **copy, struct error *err);
static int check_is_there(const char *catalog, struct error *err);
static int check_log(
	struct fsck *fsck, const char *catalog, bool *out_needs_copy, struct error *err);
static int tell_log(struct fsck *fsck, const struct log_walk *walk, struct error *err);
static int make_copy(
	struct fsck *fsck, const char *catalog, struct catalog_copy **copy, struct error *err);
static int check_schema(struct fsck *fsck, struct error *err);
static int open_packs(struct fsck *fsck, struct error *err);
static int check_identity(struct fsck *fsck, struct error *err);
static int check_master_key(struct fsck *fsck, struct error *err);

int fsck_run(const struct fsck_params *params, struct fsck_report *out, struct error *err)
{
	struct fsck fsck = {.params = params, .report = out};
	struct catalog_copy *copy = NULL;
	*out = (struct fsck_report){.change = 0};
	const int result = check_store(&fsck, &copy, err);
	reach_free(fsck.reach);
	if (fsck.backend != NULL)
		fsck.backend->ops->free(fsck.backend);
	db_close(fsck.db);
	catalog_copy_free(copy);
	explicit_bzero(fsck.master_key, sizeof(fsck.master_key));
	return result;
}

void fsck_path(const struct fsck *fsck, const char *name, char out[FSCK_PATH_BYTES])
{
	snprintf(out, FSCK_PATH_BYTES, "%s/%s", fsck->params->folder, name);
}

int fsck_tell_finding(struct fsck *fsck, struct finding *finding, struct error *err)
{
	struct error why = {0};
	finding->reach = fsck->reach;
	if (fsck->reach != NULL && reach_settle(fsck->reach, &why) != 0 && fsck_is_fatal(&why)) {
		*err = why;
		return -1;
	}
	fsck->report->findings[finding_severity_of(finding->kind)]++;
	if (++fsck->told[finding->kind] <= FSCK_TOLD_MAX)
		fsck->params->found(fsck->params->owner, finding);
	if (fsck->reach != NULL)
		reach_clear(fsck->reach);
	if (why.kind == ERROR_NONE)
		return 0;
	*err = why; /* what it touches cannot all be told */
	return fsck_tell_failure(fsck, FINDING_TABLE, "catalog.db", err);
}

int fsck_tell(struct fsck *fsck, enum finding_kind kind, const char *subject, const char *detail,
	struct error *err)
{
	struct finding finding = {.kind = kind, .detail = detail};
	snprintf(finding.subject, sizeof(finding.subject), "%s", subject);
	return fsck_tell_finding(fsck, &finding, err);
}

int fsck_tell_failure(
	struct fsck *fsck, enum finding_kind kind, const char *subject, struct error *why)
{
	const struct error found = *why;
	if (fsck_is_fatal(why))
		return -1;
	*why = (struct error){0};
	if (kind == FINDING_TABLE && fsck->has_bad_table)
		return 0;
	fsck->has_bad_table |= kind == FINDING_TABLE;
	return fsck_tell(fsck, kind, subject, found.text, why);
}

bool fsck_is_fatal(const struct error *err)
{
	return err->kind == ERROR_BUSY || err->kind == ERROR_NO_MEMORY ||
		err->kind == ERROR_NO_SPACE;
}

static int check_store(struct fsck *fsck, struct catalog_copy **copy, struct error *err)
{
	if (open_catalog(fsck, copy, err) != 0 || check_schema(fsck, err) != 0)
		return advise_rebuild(err);
	if (open_packs(fsck, err) != 0 || check_identity(fsck, err) != 0 ||
		check_master_key(fsck, err) != 0)
		return -1;
	fsck->reach = reach_new(fsck->db);
	for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++)
		if (checks[i](fsck, err) != 0)
			return -1;
	return 0;
}

static int advise_rebuild(struct error *err)
{
	return err->kind == ERROR_CORRUPT || err->kind == ERROR_DAMAGED
		? error_advise(err, "make it again with deltabucketd rebuild --replace.")
		: -1;
}

static int open_catalog(struct fsck *fsck, struct catalog_copy **copy, struct error *err)
{
	char path[FSCK_PATH_BYTES];
	bool needs_copy = false;
	fsck_path(fsck, "acknowledged", path);
	if (acknowledged_read(path, &fsck->last, err) != 0)
		return -1;
	fsck_path(fsck, "catalog.db", path);
	if (check_is_there(path, err) != 0)
		return -1;
	fsck->takes_no_writes = access(path, W_OK) != 0 && errno == EROFS;
	if (!fsck->params->is_online && check_log(fsck, path, &needs_copy, err) != 0)
		return -1;
	if ((needs_copy || fsck->takes_no_writes) && make_copy(fsck, path, copy, err) != 0)
		return -1;
	fsck->db = db_open(*copy != NULL ? catalog_copy_path(*copy) : path, DB_LOOK, err);
	if (fsck->db == NULL)
		return -1;
	db_keep_log(fsck->db, true);
	return 0;
}

static int check_is_there(const char *catalog, struct error *err)
{
	bool is_there;
	uint64_t bytes = 0;
	if (file_find(catalog, &is_there, err) != 0 ||
		(is_there && file_size(catalog, &bytes, err) != 0))
		return -1;
	return bytes > 0
		? 0
		: error_set(err, ERROR_NOT_FOUND,
			  "%s is %s. Make it again with deltabucketd rebuild, or put a backup back.",
			  catalog, is_there ? "empty" : "missing");
}

static int check_log(
	struct fsck *fsck, const char *catalog, bool *out_needs_copy, struct error *err)
{
	char path[FSCK_PATH_BYTES + 8];
	struct log_walk walk;
	const struct log_note note = {.salt = fsck->last.log_salt,
		.frames = fsck->last.log_frames,
		.is_exact = acknowledged_is_exact(&fsck->last)};
	snprintf(path, sizeof(path), "%s-wal", catalog);
	if (log_walk(path, &note, &walk, err) != 0)
		return -1;
	*out_needs_copy = walk.state == LOG_DAMAGED || walk.mend_count > 0;
	const int result = tell_log(fsck, &walk, err);
	log_walk_release(&walk);
	return result;
}

static int tell_log(struct fsck *fsck, const struct log_walk *walk, struct error *err)
{
	char text[ERROR_TEXT_BYTES];
	if (walk->state == LOG_DAMAGED) {
		snprintf(text, sizeof(text),
			"Acknowledged changes after frame %u of %u cannot all be read.",
			walk->committed, walk->frames);
		return fsck_tell(fsck, FINDING_LOG, "catalog.db-wal", text, err);
	}
	if (walk->mend_count == 0)
		return 0;
	snprintf(text, sizeof(text), "%zu bytes are one flipped bit off.", walk->mend_count);
	return fsck_tell(fsck, FINDING_LOG_END, "catalog.db-wal", text, err);
}

static int make_copy(
	struct fsck *fsck, const char *catalog, struct catalog_copy **copy, struct error *err)
{
	bool ignored;
	*copy = catalog_copy_make(fsck->params->files, catalog, err);
	if (*copy == NULL)
		return -1;
	const struct catalog_log_params log = {.files = fsck->params->files,
		.catalog_path = catalog_copy_path(*copy),
		.last = &fsck->last,
		.accepts_loss = true};
	return catalog_log_prepare(&log, &ignored, err);
}

static int check_schema(struct fsck *fsck, struct error *err)
{
	const int newest = migration_list[migration_count - 1].number;
	int version = 0;
	int application = 0;
	if (db_get_version(fsck->db, &version, &application, err) != 0)
		return -1;
	if (application != CATALOG_APPLICATION)
		return error_set(err, ERROR_UNSUPPORTED,
			"%s is not a deltabucket catalog (application id %d).", db_path(fsck->db),
			application);
	if (version != newest)
		return error_set(err, ERROR_UNSUPPORTED,
			"%s has schema %d, and this program checks schema %d. %s",
			db_path(fsck->db), version, newest,
			version < newest
				? "Start the server once: it brings the catalog to that form."
				: "Use the newer program.");
	return 0;
}

static int open_packs(struct fsck *fsck, struct error *err)
{
	char packs[FSCK_PATH_BYTES];
	char aside[FSCK_PATH_BYTES];
	fsck_path(fsck, "packs", packs);
	fsck_path(fsck, "set-aside", aside);
	if (place_note_check(fsck->params->folder, err) != 0)
		return -1;
	fsck->backend = backend_folder_open(packs, aside, fsck->params->files, err);
	return fsck->backend == NULL ? -1 : 0;
}

/* Whether this is the catalog of the store that was last used here, and has all that was
 * acknowledged. */
static int check_identity(struct fsck *fsck, struct error *err)
{
	static const char SQL_CHANGE[] = "SELECT change FROM sums";
	struct store_identity store;
	char text[ERROR_TEXT_BYTES];
	if (store_row_read(fsck->db, &store, err) != 0 ||
		db_find_i64(fsck->db, SQL_CHANGE, &fsck->report->change, err) < 0)
		return -1;
	const struct acknowledgement *last = &fsck->last;
	fsck->store = store;
	if (last->store.life == 0)
		return fsck_tell(fsck, FINDING_UNACKNOWLEDGED, "acknowledged",
			"It is not there, so an older catalog would not be noticed.", err);
	if (memcmp(store.id, last->store.id, STORE_ID_BYTES) != 0)
		return fsck_tell(fsck, FINDING_ACKNOWLEDGED, "catalog.db",
			"It is the catalog of another store than the one that was last used here.",
			err);
	if (store.life >= last->store.life && fsck->report->change >= last->change)
		return 0;
	snprintf(text, sizeof(text),
		"It ends with change %" PRId64 " of life %" PRIu64 ", and change %" PRId64
		" of life %" PRIu64 " was acknowledged.",
		fsck->report->change, store.life, last->change, last->store.life);
	return fsck_tell(fsck, FINDING_ACKNOWLEDGED, "catalog.db", text, err);
}

static int check_master_key(struct fsck *fsck, struct error *err)
{
	bool is_there = true;
	struct error why = {0};
	const struct fsck_params *params = fsck->params;
	const char *const path = params->master_key;
	if (path != NULL && file_find(path, &is_there, err) != 0)
		return -1;
	if (!is_there)
		return fsck_tell(fsck, FINDING_MASTER_KEY, path,
			"It is missing, and without the master key no server starts and no key can"
			" sign in.",
			err);
	if (path == NULL || params->read_key == NULL)
		return 0;
	fsck->has_key = params->read_key(path, fsck->master_key, &why) == 0;
	return fsck->has_key ? 0 : fsck_tell(fsck, FINDING_MASTER_KEY, path, why.text, err);
}
