/* The journal: every snapshot proves itself, and the best way through the files leads to the last
 * change of the catalog, with its counts and sums. While a server runs it goes on changing, so the
 * end is compared with the change that the catalog had before the files were read. */
#include "storage/fsck/fsck_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "storage/db/db_sums.h"
#include "storage/journal/journal_history.h"
#include "storage/journal/snapshot.h"

enum { TRIES = 3 };

struct catalog_end { /* of the catalog */
	int64_t change;
	uint64_t sums;
};
struct journal_look {
	struct fsck *fsck;
	struct catalog_end catalog;
	struct journal_history *history;
	char fault[ERROR_TEXT_BYTES]; /* empty: the journal is right */
};

static int read_catalog_end(struct fsck *fsck, struct catalog_end *out, struct error *err);
static int look_at_journal(struct journal_look *look, struct error *err);
static int read_history(struct journal_look *look, struct error *err);
static void judge(struct journal_look *look, const struct journal_way *way);
static int check_snapshots(struct fsck *fsck, struct error *err);
static int check_snapshot(
	struct fsck *fsck, const char *folder, const char *name, struct error *err);
static int fsck_take_rows(void *owner, struct span rows, struct error *err);

int fsck_journal(struct fsck *fsck, struct error *err)
{
	struct journal_look look = {.fsck = fsck};
	int result = 0;
	for (int i = 0; i < TRIES && result == 0; i++) {
		result = look_at_journal(&look, err);
		if (!fsck->params->is_online || look.fault[0] == '\0')
			break;
	}
	if (result == 0 && look.fault[0] != '\0')
		result = fsck_tell(fsck, FINDING_JOURNAL, "journal/", look.fault, err);
	if (result == 0)
		result = check_snapshots(fsck, err);
	journal_history_free(look.history);
	return result;
}

static int look_at_journal(struct journal_look *look, struct error *err)
{
	struct journal_way way;
	look->fault[0] = '\0';
	if (read_catalog_end(look->fsck, &look->catalog, err) != 0 || read_history(look, err) != 0)
		return -1;
	if (journal_history_snapshots(look->history) == 0) {
		snprintf(look->fault, sizeof(look->fault), "It has no snapshot.");
		return 0;
	}
	journal_history_way(look->history, 0, &way);
	judge(look, &way);
	look->fsck->report->journal_records = way.records;
	return 0;
}

static int read_catalog_end(struct fsck *fsck, struct catalog_end *out, struct error *err)
{
	static const char SQL_CHANGE[] = "SELECT change FROM sums";
	struct table_sums *sums = memory_new(sizeof(*sums));
	int result = db_snapshot_begin(fsck->db, err);
	if (result == 0) {
		result = db_sums_load(fsck->db, sums, err);
		if (result == 0 && db_find_i64(fsck->db, SQL_CHANGE, &out->change, err) < 0)
			result = -1;
		db_snapshot_end(fsck->db);
	}
	out->sums = table_sums_total(sums);
	free(sums);
	return result;
}

static int read_history(struct journal_look *look, struct error *err)
{
	char folder[FSCK_PATH_BYTES];
	journal_history_free(look->history);
	fsck_path(look->fsck, "journal", folder);
	look->history = journal_history_read(folder, err);
	return look->history == NULL ? -1 : 0;
}

/* A record that was being written when the process died ends the journal too, and lacks nothing. */
static void judge(struct journal_look *look, const struct journal_way *way)
{
	const struct catalog_end *catalog = &look->catalog;
	if (way->end.change < catalog->change)
		snprintf(look->fault, sizeof(look->fault),
			"It leads to change %" PRId64 ", and the catalog ends with change %" PRId64
			". %.300s",
			way->end.change, catalog->change, way->gap);
	else if (way->end.change == catalog->change && way->records > 0 &&
		way->sums != catalog->sums)
		snprintf(look->fault, sizeof(look->fault),
			"It leads to other rows than the catalog has after change %" PRId64 ".",
			catalog->change);
}

static int check_snapshots(struct fsck *fsck, struct error *err)
{
	char folder[FSCK_PATH_BYTES];
	char **names = NULL;
	size_t count = 0;
	int result = 0;
	fsck_path(fsck, "journal", folder);
	if (!file_exists(folder))
		return 0;
	if (file_list(folder, &names, &count, err) != 0)
		return -1;
	for (size_t i = 0; i < count && result == 0; i++) {
		enum journal_kind kind;
		uint64_t number;
		if (journal_name_parse(names[i], &kind, &number) && kind == JOURNAL_SNAPSHOT)
			result = check_snapshot(fsck, folder, names[i], err);
	}
	file_names_free(names, count);
	return result;
}

/* A server removes old ones. */
static int check_snapshot(
	struct fsck *fsck, const char *folder, const char *name, struct error *err)
{
	char path[FSCK_PATH_BYTES + JOURNAL_NAME_BYTES];
	uint64_t sums = 0;
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	if (snapshot_read(path, &sums, fsck_take_rows, NULL, err) == 0)
		return 0;
	if (!fsck->params->is_online || err->kind != ERROR_NOT_FOUND)
		return fsck_tell_failure(fsck, FINDING_SNAPSHOT, name, err);
	*err = (struct error){0};
	return 0;
}

static int fsck_take_rows(void *owner, struct span rows, struct error *err)
{
	(void)owner, (void)rows, (void)err;
	return 0;
}
