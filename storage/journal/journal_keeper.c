/* A log may go once two verified snapshots are newer than all that it leads to: the next log begins
 * at or before the change of the older snapshot. What another store left in the folder stays. */
#include "storage/journal/journal_keeper.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/thread/worker_thread.h"
#include "storage/journal/journal_history.h"
#include "storage/journal/journal_reader.h"
#include "storage/journal/snapshot.h"

enum {
	PATH_BYTES = 4096,
	LOOK_MS = 1000,
	AGAIN_MS = 5 * 60 * 1000,
	LOOK_AGAIN_MS = 24 * 60 * 60 * 1000,
	KEPT = 2
};
/* A larger catalog would hold up the end of the process for long. */
static const uint64_t LAST_BYTES = UINT64_C(256) << 20;

struct journal_keeper {
	struct journal *journal;
	char *catalog_path;
	struct log *log;
	struct metrics *metrics;
	struct work_notes *notes;
	struct worker_thread thread;
	int64_t look_due_ms; /* when the files are read again */
	bool is_ending;      /* the thread has ended; one more snapshot may be made */
};

static void remove_leftovers(struct journal *journal);
static int64_t journal_keeper_round(void *owner);
static void tell_incomplete(const struct journal_keeper *keeper);
static void look_at_files(struct journal_keeper *keeper);
static void doubt(struct journal_keeper *keeper, const char *why);
static void prove_snapshots(struct journal_keeper *keeper, const struct journal_history *history);
static void make_last_snapshot(struct journal_keeper *keeper);
static int make_snapshot(struct journal_keeper *keeper, struct error *err);
static int write_snapshot(struct journal_keeper *keeper, struct db *db,
	struct journal_header *out_header, uint64_t *out_bytes, struct error *err);
static bool journal_keeper_goes_on(void *owner);
static int remove_old(struct journal *journal, struct error *err);
static bool find_oldest_kept(
	const struct journal *journal, char **names, size_t count, struct journal_header *out);
static int remove_snapshots(
	struct journal *journal, char **names, size_t count, uint64_t below, struct error *err);
static bool is_foreign(const struct journal *journal, const char *name);
static int remove_logs(struct journal *journal, char **names, size_t count,
	const struct journal_header *kept, struct error *err);
static int remove_file(struct journal *journal, const char *name, struct error *err);

struct journal_keeper *journal_keeper_start(struct journal *journal, const char *catalog_path,
	struct log *log, struct metrics *metrics, struct work_notes *notes)
{
	static const struct worker_thread_plan plan = {
		.name = "journal", .first_ms = 0, .round = journal_keeper_round};
	struct journal_keeper *keeper = memory_new(sizeof(*keeper));
	keeper->journal = journal;
	keeper->catalog_path = memory_copy_text(catalog_path);
	keeper->log = log;
	keeper->metrics = metrics;
	keeper->notes = notes;
	work_notes_set(notes, WORK_JOURNAL, WORK_RESTING, "%s", "");
	remove_leftovers(journal);
	worker_thread_start(&keeper->thread, &plan, keeper);
	return keeper;
}

void journal_keeper_stop(struct journal_keeper *keeper)
{
	if (keeper == NULL)
		return;
	worker_thread_stop(&keeper->thread);
	make_last_snapshot(keeper);
	worker_thread_release(&keeper->thread);
	free(keeper->catalog_path);
	free(keeper);
}

/* Snapshots that an earlier process did not finish. */
static void remove_leftovers(struct journal *journal)
{
	char **names;
	size_t count;
	struct error ignored;
	if (file_list(journal_folder(journal), &names, &count, &ignored) != 0)
		return;
	for (size_t i = 0; i < count; i++)
		if (strstr(names[i], ".snapshot" SNAPSHOT_UNFINISHED) != NULL)
			(void)remove_file(journal, names[i], &ignored);
	file_names_free(names, count);
}

static int64_t journal_keeper_round(void *owner)
{
	struct journal_keeper *keeper = owner;
	struct error err = {0};
	if (clock_monotonic_ms() >= keeper->look_due_ms)
		look_at_files(keeper);
	const bool wants = journal_wants_snapshot(keeper->journal);
	tell_incomplete(keeper);
	if (wants)
		work_notes_set(keeper->notes, WORK_JOURNAL, WORK_WORKING, "makes a snapshot");
	const int result = wants ? make_snapshot(keeper, &err) : 0;
	if (wants)
		work_notes_set(keeper->notes, WORK_JOURNAL, WORK_RESTING, "%s",
			result == 0 ? "" : "its last snapshot could not be made");
	tell_incomplete(keeper);
	if (result == 0)
		return LOOK_MS;
	if (err.kind == ERROR_BUSY)
		return LOOK_MS;
	log_failure(keeper->log, LOG_ERROR, NULL, "snapshot_failed", &err);
	return AGAIN_MS;
}

static void tell_incomplete(const struct journal_keeper *keeper)
{
	metrics_set(
		keeper->metrics, METRIC_JOURNAL_INCOMPLETE, journal_is_incomplete(keeper->journal));
}

/* A start only looks for the record of the catalog's last change. Whether a sound snapshot leads
 * there shows when everything in between is read; what is damaged since shows a day later. Where
 * something is wrong another snapshot is made, and then a second one: the damaged files are too old
 * then, and go. */
static void look_at_files(struct journal_keeper *keeper)
{
	struct error err = {0};
	const int64_t change = journal_last_change(keeper->journal);
	struct journal_history *history =
		journal_history_read(journal_folder(keeper->journal), &err);
	struct journal_way way = {.end = {.change = -1}};
	if (history != NULL && journal_history_snapshots(history) > 0)
		journal_history_way(history, 0, &way);
	if (way.end.change < change)
		doubt(keeper, way.gap);
	if (history != NULL)
		prove_snapshots(keeper, history);
	journal_history_free(history);
	keeper->look_due_ms = clock_monotonic_ms() + LOOK_AGAIN_MS;
}

/* `why` is empty when no file is damaged: the journal has just begun. */
static void doubt(struct journal_keeper *keeper, const char *why)
{
	const struct log_field field = log_text("why", why);
	journal_doubt(keeper->journal);
	if (why[0] != '\0')
		log_event(keeper->log, LOG_WARNING, NULL, "journal_damaged", &field, 1);
}

static void prove_snapshots(struct journal_keeper *keeper, const struct journal_history *history)
{
	if (journal_history_damaged(history) > 0)
		doubt(keeper, journal_history_damage(history));
	for (size_t i = 0; i < journal_history_snapshots(history); i++) {
		struct journal_way way;
		struct error err = {0};
		uint64_t sums;
		journal_history_way(history, i, &way);
		if (snapshot_read(way.snapshot, &sums, NULL, NULL, &err) != 0)
			doubt(keeper, err.text);
	}
}

/* A store that is closed in order can be made again from its journal, however short its life
 * was, unless its catalog is large. */
static void make_last_snapshot(struct journal_keeper *keeper)
{
	struct error err = {0};
	uint64_t bytes = 0;
	keeper->is_ending = true;
	if (!journal_is_incomplete(keeper->journal) ||
		file_size(keeper->catalog_path, &bytes, &err) != 0 || bytes > LAST_BYTES)
		return;
	if (make_snapshot(keeper, &err) != 0)
		log_failure(keeper->log, LOG_WARNING, NULL, "snapshot_failed", &err);
}

static int make_snapshot(struct journal_keeper *keeper, struct error *err)
{
	struct journal_header header;
	uint64_t bytes = 0;
	struct db *db = db_open(keeper->catalog_path, DB_READ, err);
	if (db == NULL)
		return -1;
	journal_turn(keeper->journal); /* what the snapshot has is then in logs of before */
	int result = db_snapshot_begin(db, err);
	if (result == 0) {
		result = write_snapshot(keeper, db, &header, &bytes, err);
		db_snapshot_end(db);
	}
	db_close(db);
	if (result != 0)
		return -1;
	journal_note_snapshot(keeper->journal, &header.point, bytes);
	const struct log_field fields[] = {
		log_number("change", header.point.change), log_number("bytes", (int64_t)bytes)};
	log_event(keeper->log, LOG_INFO, NULL, "snapshot_made", fields, 2);
	return remove_old(keeper->journal, err);
}

static int write_snapshot(struct journal_keeper *keeper, struct db *db,
	struct journal_header *out_header, uint64_t *out_bytes, struct error *err)
{
	static const char SQL_CHANGE[] = "SELECT change FROM sums";
	char path[PATH_BYTES];
	char name[JOURNAL_NAME_BYTES];
	int64_t change = -1;
	if (db_find_i64(db, SQL_CHANGE, &change, err) < 0)
		return -1;
	if (change < 0 || !journal_describe(keeper->journal, change, out_header))
		return error_set(err, ERROR_BUSY, "The catalog has changed meanwhile.");
	journal_name_print(JOURNAL_SNAPSHOT, out_header->number, name);
	snprintf(path, sizeof(path), "%s/%s", journal_folder(keeper->journal), name);
	const struct snapshot_plan plan = {.files = journal_files(keeper->journal),
		.path = path,
		.header = out_header,
		.goes_on = journal_keeper_goes_on,
		.owner = keeper};
	return snapshot_make(db, &plan, out_bytes, err);
}

static bool journal_keeper_goes_on(void *owner)
{
	struct journal_keeper *keeper = owner;
	return keeper->is_ending || !worker_thread_is_stopping(&keeper->thread);
}

static int remove_old(struct journal *journal, struct error *err)
{
	struct journal_header kept;
	char **names;
	size_t count;
	int result = 0;
	if (file_list(journal_folder(journal), &names, &count, err) != 0)
		return -1;
	if (find_oldest_kept(journal, names, count, &kept)) {
		result = remove_snapshots(journal, names, count, kept.number, err);
		if (result == 0)
			result = remove_logs(journal, names, count, &kept, err);
	}
	file_names_free(names, count);
	return result;
}

/* The older one of the last two snapshots. */
static bool find_oldest_kept(
	const struct journal *journal, char **names, size_t count, struct journal_header *out)
{
	size_t found = 0;
	for (size_t i = count; i-- > 0 && found < KEPT;) {
		enum journal_kind kind;
		uint64_t number;
		char path[PATH_BYTES];
		struct error ignored;
		if (!journal_name_parse(names[i], &kind, &number) || kind != JOURNAL_SNAPSHOT)
			continue;
		snprintf(path, sizeof(path), "%s/%s", journal_folder(journal), names[i]);
		found += snapshot_read_header(path, out, &ignored) == 0 &&
			journal_owns(journal, out);
	}
	return found == KEPT;
}

static int remove_snapshots(
	struct journal *journal, char **names, size_t count, uint64_t below, struct error *err)
{
	for (size_t i = 0; i < count; i++) {
		enum journal_kind kind;
		uint64_t number;
		if (journal_name_parse(names[i], &kind, &number) && kind == JOURNAL_SNAPSHOT &&
			number < below && !is_foreign(journal, names[i]) &&
			remove_file(journal, names[i], err) != 0)
			return -1;
	}
	return 0;
}

/* Whether another store made the snapshot. A damaged one counts as our own. */
static bool is_foreign(const struct journal *journal, const char *name)
{
	char path[PATH_BYTES];
	struct journal_header header;
	struct error ignored;
	snprintf(path, sizeof(path), "%s/%s", journal_folder(journal), name);
	return snapshot_read_header(path, &header, &ignored) == 0 &&
		!journal_owns(journal, &header);
}

static int remove_logs(struct journal *journal, char **names, size_t count,
	const struct journal_header *kept, struct error *err)
{
	const char *before = NULL; /* the log before this one */
	for (size_t i = 0; i < count; i++) {
		enum journal_kind kind;
		uint64_t number;
		char path[PATH_BYTES];
		struct journal_header header;
		struct error ignored;
		if (!journal_name_parse(names[i], &kind, &number) || kind != JOURNAL_LOG)
			continue;
		snprintf(path, sizeof(path), "%s/%s", journal_folder(journal), names[i]);
		struct journal_reader *reader = journal_reader_open(path, &header, &ignored);
		const bool is_own = reader != NULL && journal_owns(journal, &header);
		journal_reader_close(reader);
		if (!is_own)
			continue;
		if (number > kept->number || header.point.change > kept->point.change)
			return 0;
		if (before != NULL && remove_file(journal, before, err) != 0)
			return -1;
		before = names[i];
	}
	return 0;
}

static int remove_file(struct journal *journal, const char *name, struct error *err)
{
	const struct file_ops *files = journal_files(journal);
	char path[PATH_BYTES];
	snprintf(path, sizeof(path), "%s/%s", journal_folder(journal), name);
	return files->unlink(files, path) == 0 ? 0
					       : error_set_errno(err, "%s cannot be removed", path);
}
