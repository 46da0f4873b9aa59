/* The journal: every snapshot proves itself, and the best way through the files leads to the last
 * change of the catalog, with its counts and sums. While a server runs it goes on changing, so the
 * end is compared with the change that the catalog had before the files were read. */
#include "storage/fsck/fsck_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

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
	enum finding_kind kind;
	char fault[ERROR_TEXT_BYTES]; /* empty: the journal is right */
};

static int judge_without(struct journal_look *look, struct error *err);
static int count_files(struct fsck *fsck, size_t *out_count, struct error *err);
static bool has_buckets(struct fsck *fsck);
static int read_catalog_end(struct fsck *fsck, struct catalog_end *out, struct error *err);
static int look_at_journal(struct journal_look *look, struct error *err);
static int read_history(struct journal_look *look, struct error *err);
static void find_way(const struct journal_look *look, struct journal_way *out);
static void read_sums(struct journal_way *way);
static void judge(struct journal_look *look, const struct journal_way *way);
static void tell_older(struct journal_look *look, const struct journal_way *way);
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
		result = fsck_tell(fsck, look.kind,
			look.kind == FINDING_ACKNOWLEDGED ? "catalog.db" : "journal/", look.fault,
			err);
	if (result == 0)
		result = check_snapshots(fsck, err);
	journal_history_free(look.history);
	return result;
}

static int look_at_journal(struct journal_look *look, struct error *err)
{
	struct journal_way way;
	look->kind = FINDING_JOURNAL;
	look->fault[0] = '\0';
	if (read_catalog_end(look->fsck, &look->catalog, err) != 0 || read_history(look, err) != 0)
		return -1;
	if (journal_history_snapshots(look->history) == 0)
		return judge_without(look, err);
	find_way(look, &way);
	if (way.records == 0)
		read_sums(&way);
	judge(look, &way);
	look->fsck->report->journal_records = way.records;
	return 0;
}

/* A first start that was killed had no time for a snapshot, but its changes are in a log. */
static int judge_without(struct journal_look *look, struct error *err)
{
	size_t files = 0;
	const bool is_first = look->fsck->store.life <= 1;
	if (count_files(look->fsck, &files, err) != 0)
		return -1;
	if (is_first && (files > 0 || !has_buckets(look->fsck)))
		look->kind = FINDING_NO_SNAPSHOT;
	snprintf(look->fault, sizeof(look->fault), "%s",
		files > 0 ? "It has no snapshot."
			  : "It is missing or empty, so a lost catalog could not be made again.");
	return 0;
}

static int count_files(struct fsck *fsck, size_t *out_count, struct error *err)
{
	char folder[FSCK_PATH_BYTES];
	char **names = NULL;
	bool is_there;
	fsck_path(fsck, "journal", folder);
	if (file_find(folder, &is_there, err) != 0 ||
		(is_there && file_list(folder, &names, out_count, err) != 0))
		return -1;
	file_names_free(names, *out_count);
	return 0;
}

/* True also when that cannot be read. */
static bool has_buckets(struct fsck *fsck)
{
	struct error ignored = {0};
	return db_exists(fsck->db, "SELECT 1 FROM buckets LIMIT 1", &ignored) != 0;
}

static int read_catalog_end(struct fsck *fsck, struct catalog_end *out, struct error *err)
{
	static const char SQL_CHANGE[] = "SELECT change FROM sums";
	int result = db_snapshot_begin(fsck->db, err);
	if (result == 0) {
		result = db_sums_total(fsck->db, &out->sums, err);
		if (result == 0 && db_find_i64(fsck->db, SQL_CHANGE, &out->change, err) < 0)
			result = -1;
		db_snapshot_end(fsck->db);
	}
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

/* The way that ends with the catalog's last change, or else the best one. A rebuild leaves a
 * snapshot that no log leads to. */
static void find_way(const struct journal_look *look, struct journal_way *out)
{
	const size_t count = journal_history_snapshots(look->history);
	for (size_t i = 0; i < count; i++) {
		journal_history_way(look->history, i, out);
		if (out->end.change == look->catalog.change)
			return;
	}
	journal_history_way(look->history, 0, out);
}

/* The sums of the snapshot itself; a damaged one is told of later. */
static void read_sums(struct journal_way *way)
{
	struct error ignored = {0};
	if (snapshot_read(way->snapshot, &way->sums, fsck_take_rows, NULL, &ignored) != 0)
		way->sums = 0;
}

/* A record that was being written when the process died ends the journal too, and lacks nothing.
 * The last record may be one whose change never committed. */
static void judge(struct journal_look *look, const struct journal_way *way)
{
	const struct catalog_end *catalog = &look->catalog;
	const bool is_of_store =
		memcmp(way->header.store, look->fsck->store.id, sizeof(way->header.store)) == 0;
	if (!is_of_store)
		snprintf(look->fault, sizeof(look->fault), "It is the journal of another store.");
	else if (way->end.change > catalog->change + 1 && !look->fsck->params->is_online)
		tell_older(look, way);
	else if (way->end.change < catalog->change)
		snprintf(look->fault, sizeof(look->fault),
			"It leads to change %" PRId64 ", and the catalog ends with change %" PRId64
			". %.300s",
			way->end.change, catalog->change, way->gap);
	else if (way->end.change == catalog->change && way->sums != 0 && way->sums != catalog->sums)
		snprintf(look->fault, sizeof(look->fault),
			"It leads to other rows than the catalog has after change %" PRId64 ".",
			catalog->change);
}

static void tell_older(struct journal_look *look, const struct journal_way *way)
{
	look->kind = FINDING_ACKNOWLEDGED;
	snprintf(look->fault, sizeof(look->fault),
		"It ends with change %" PRId64 ", and the journal with change %" PRId64
		": it is an older catalog than the one that was last used here.",
		look->catalog.change, way->end.change);
}

static int check_snapshots(struct fsck *fsck, struct error *err)
{
	char folder[FSCK_PATH_BYTES];
	char **names = NULL;
	size_t count = 0;
	int result = 0;
	bool is_there;
	fsck_path(fsck, "journal", folder);
	if (file_find(folder, &is_there, err) != 0)
		return -1;
	if (!is_there)
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
		return fsck_tell_failure(fsck,
			err->kind == ERROR_CORRUPT ? FINDING_SNAPSHOT : FINDING_JOURNAL, name, err);
	*err = (struct error){0};
	return 0;
}

static int fsck_take_rows(void *owner, struct span rows, struct error *err)
{
	(void)owner, (void)rows, (void)err;
	return 0;
}
