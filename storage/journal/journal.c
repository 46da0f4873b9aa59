/* The lock is held while a record is written, never while something is synced: a log that is
 * complete stays open until the next sync, which closes it.
 *
 *   no log --first change--> a log --turn, 8 MiB, failed write or sync--> no log
 *
 * A record that did not commit is cut off; where that fails the next change begins another log,
 * whose header says what it follows on. */
#include "storage/journal/journal.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/thread/lock.h"
#include "storage/journal/journal_reader.h"
#include "storage/journal/snapshot.h"

enum { PATH_BYTES = 4096, POINTS = 1024, FILE_MODE = 0600, FOLDER_MODE = 0700, LOGS_MAX = 64 };
/* A snapshot is made when the logs since the last one have this many bytes, and twice as many as
 * that snapshot. */
static const uint64_t SNAPSHOT_BYTES = UINT64_C(8) << 20;
static const off_t LOG_MAX_BYTES = (off_t)8 << 20;

struct journal_log { /* an open log */
	int fd;
	bool is_dirty;   /* written since the last sync */
	bool needs_name; /* its name was not synced */
	char path[PATH_BYTES];
};

struct journal {
	struct journal_options options;
	char *folder;
	struct lock syncing;        /* one sync at a time; taken before `lock` */
	struct lock lock;           /* guards all below */
	struct journal_log current; /* fd -1: the next change begins one */
	off_t end;                  /* of its committed records */
	struct journal_log *turned; /* logs that are complete, but not synced */
	size_t turned_count;
	size_t turned_capacity;
	struct journal_point at;    /* the last change */
	struct journal_point taken; /* the record that is not settled yet */
	off_t taken_end;
	bool has_taken;                      /* false: it could not be written */
	struct journal_point points[POINTS]; /* of the latest changes, by number */
	uint64_t next_number;                /* of a file */
	uint64_t logged;                     /* bytes since the last snapshot */
	uint64_t snapshot_bytes;
	size_t logs; /* files since the last snapshot */
	bool lacks_snapshot;
	bool is_anew;      /* no file leads to `at` */
	int64_t anew_from; /* the change from which on the files lead to `at` */
};

struct folder_look { /* at a start */
	struct journal *journal;
	bool found;        /* the record of the catalog's last change */
	bool has_snapshot; /* the files from here on are older than the newest snapshot */
	bool is_anew;      /* a log after the newest snapshot does not follow on it */
};

static int look_at_folder(struct journal *journal, struct error *err);
static void look_at_file(struct folder_look *look, const char *name);
static void look_at_snapshot(struct folder_look *look, const char *path);
static void look_at_log(struct folder_look *look, const char *path);
static bool find_change(struct journal *journal, struct journal_reader *reader);
static void begin_anew(struct journal *journal, int64_t change);
static void journal_take(void *owner, const struct db_record *record);
static int begin_log(struct journal *journal, struct error *err);
static int write_header(struct journal *journal, struct error *err);
static int write_record(struct journal *journal, const struct db_record *change, struct error *err);
static void journal_settle(void *owner, enum db_outcome outcome);
static void cut_back(struct journal *journal);
static void journal_lose(void *owner);
static void turn(struct journal *journal);
static struct journal_log take_logs(
	struct journal *journal, struct journal_log **out_turned, size_t *out_count);
static int sync_log(struct journal *journal, const struct journal_log *log, struct error *err);
static void note_failed_sync(struct journal *journal, const struct error *err);

struct journal *journal_open(const struct journal_options *options, struct error *err)
{
	struct journal *journal = memory_new(sizeof(*journal));
	ASSERT(options->files != NULL && options->change >= 0);
	journal->options = *options;
	journal->folder = memory_copy_text(options->folder);
	journal->options.folder = journal->folder;
	journal->current.fd = -1;
	lock_init(&journal->syncing, LOCK_JOURNAL_SYNC);
	lock_init(&journal->lock, LOCK_JOURNAL);
	if (file_make_folder(options->files, options->folder, FOLDER_MODE, err) == 0 &&
		look_at_folder(journal, err) == 0)
		return journal;
	journal_close(journal);
	return NULL;
}

void journal_close(struct journal *journal)
{
	struct error ignored;
	if (journal == NULL)
		return;
	journal_turn(journal);
	(void)journal_sync(journal, &ignored);
	ASSERT(journal->current.fd < 0 && journal->turned_count == 0);
	lock_release(&journal->lock);
	lock_release(&journal->syncing);
	free(journal->turned);
	free(journal->folder);
	free(journal);
}

struct db_recorder journal_recorder(struct journal *journal)
{
	return (struct db_recorder){.owner = journal,
		.take = journal_take,
		.settle = journal_settle,
		.lose = journal_lose};
}

int journal_sync(struct journal *journal, struct error *err)
{
	struct journal_log *turned;
	size_t count;
	int result = 0;
	if (journal == NULL)
		return 0;
	lock_enter(&journal->syncing);
	const struct journal_log current = take_logs(journal, &turned, &count);
	for (size_t i = 0; i < count; i++) {
		if (result == 0)
			result = sync_log(journal, &turned[i], err);
		close(turned[i].fd);
	}
	if (result == 0 && current.fd >= 0)
		result = sync_log(journal, &current, err);
	if (result != 0)
		note_failed_sync(journal, err);
	lock_leave(&journal->syncing);
	free(turned);
	return result;
}

const char *journal_folder(const struct journal *journal)
{
	return journal->folder;
}

const struct file_ops *journal_files(const struct journal *journal)
{
	return journal->options.files;
}

bool journal_owns(const struct journal *journal, const struct journal_header *header)
{
	return memcmp(header->store, journal->options.store, JOURNAL_STORE_BYTES) == 0;
}

int64_t journal_last_change(struct journal *journal)
{
	lock_enter(&journal->lock);
	const int64_t change = journal->at.change;
	lock_leave(&journal->lock);
	return change;
}

bool journal_wants_snapshot(struct journal *journal)
{
	lock_enter(&journal->lock);
	const uint64_t most = 2 * journal->snapshot_bytes > SNAPSHOT_BYTES
		? 2 * journal->snapshot_bytes
		: SNAPSHOT_BYTES;
	const bool wants =
		journal->lacks_snapshot || journal->logged > most || journal->logs > LOGS_MAX;
	lock_leave(&journal->lock);
	return wants;
}

void journal_doubt(struct journal *journal)
{
	lock_enter(&journal->lock);
	journal->lacks_snapshot = true;
	lock_leave(&journal->lock);
}

bool journal_is_incomplete(struct journal *journal)
{
	lock_enter(&journal->lock);
	const bool is_incomplete = journal->lacks_snapshot;
	lock_leave(&journal->lock);
	return is_incomplete;
}

void journal_turn(struct journal *journal)
{
	lock_enter(&journal->lock);
	turn(journal);
	lock_leave(&journal->lock);
}

bool journal_describe(struct journal *journal, int64_t change, struct journal_header *out)
{
	lock_enter(&journal->lock);
	const struct journal_point *point = &journal->points[change % POINTS];
	const bool is_known = point->change == change;
	if (is_known) {
		*out = (struct journal_header){.life = journal->options.life,
			.number = journal->next_number++,
			.schema = journal->options.schema,
			.made_ms = clock_wall_ms(),
			.point = *point};
		memcpy(out->store, journal->options.store, JOURNAL_STORE_BYTES);
	}
	lock_leave(&journal->lock);
	return is_known;
}

/* A break in the journal after the moment of the snapshot wants another one. */
void journal_note_snapshot(struct journal *journal, const struct journal_point *at, uint64_t bytes)
{
	lock_enter(&journal->lock);
	const struct journal_point *known = &journal->points[at->change % POINTS];
	journal->lacks_snapshot = at->change < journal->anew_from ||
		(known->change == at->change && !journal_point_equal(known, at));
	if (journal_point_equal(&journal->at, at))
		journal->is_anew = false;
	journal->logged = 0;
	journal->logs = 0;
	journal->snapshot_bytes = bytes;
	lock_leave(&journal->lock);
}

/* Looks from the newest file to the oldest. Files that are no whole logs are passed over: they
 * lead to no record. */
static int look_at_folder(struct journal *journal, struct error *err)
{
	struct folder_look look = {.journal = journal};
	char **names;
	size_t count;
	if (file_list(journal->folder, &names, &count, err) != 0)
		return -1;
	for (size_t i = count; i-- > 0;)
		look_at_file(&look, names[i]);
	file_names_free(names, count);
	journal->lacks_snapshot = !look.has_snapshot || look.is_anew;
	if (look.found)
		journal->points[journal->at.change % POINTS] = journal->at;
	else
		begin_anew(journal, journal->options.change);
	return 0;
}

static void look_at_file(struct folder_look *look, const char *name)
{
	struct journal *journal = look->journal;
	enum journal_kind kind;
	uint64_t number;
	char path[PATH_BYTES];
	if (!journal_name_parse(name, &kind, &number))
		return;
	if (number >= journal->next_number)
		journal->next_number = number + 1;
	snprintf(path, sizeof(path), "%s/%s", journal->folder, name);
	if (kind == JOURNAL_SNAPSHOT)
		look_at_snapshot(look, path);
	else if (!look->found || !look->has_snapshot)
		look_at_log(look, path);
}

/* Whether it is one of this store and its present schema. One of the catalog's last change leads to
 * it: a rebuild makes one. */
static void look_at_snapshot(struct folder_look *look, const char *path)
{
	struct journal *journal = look->journal;
	struct journal_header header;
	struct error ignored;
	if (look->has_snapshot || snapshot_read_header(path, &header, &ignored) != 0 ||
		!journal_owns(journal, &header) || header.schema != journal->options.schema ||
		file_size(path, &journal->snapshot_bytes, &ignored) != 0)
		return;
	look->has_snapshot = true;
	if (look->found || header.point.change != journal->options.change)
		return;
	look->found = true;
	journal->at = header.point;
}

static void look_at_log(struct folder_look *look, const char *path)
{
	struct journal *journal = look->journal;
	const struct journal_options *options = &journal->options;
	struct journal_header header;
	struct error ignored;
	uint64_t size = 0;
	struct journal_reader *reader = journal_reader_open(path, &header, &ignored);
	if (reader == NULL)
		return;
	if (!look->has_snapshot) {
		journal->logs++;
		journal->logged += file_size(path, &size, &ignored) == 0 ? size : 0;
		look->is_anew |= header.is_anew;
	}
	if (!look->found && header.schema == options->schema && journal_owns(journal, &header) &&
		header.point.change < options->change)
		look->found = find_change(journal, reader);
	journal_reader_close(reader);
}

/* The number alone does not tell: an earlier life may have written a record of that number that
 * never committed, and the next life a change of its own whose record is lost. */
static bool find_change(struct journal *journal, struct journal_reader *reader)
{
	struct journal_record record = {.change = -1};
	struct span rows;
	struct error ignored;
	while (record.change < journal->options.change &&
		journal_reader_next(reader, &record, &rows, &ignored) == 1)
		;
	journal->at = (struct journal_point){record.change, record.digest};
	return record.change == journal->options.change && record.sums == journal->options.sums;
}

/* A digest that no other history has: nothing that is there leads to this change. */
static void begin_anew(struct journal *journal, int64_t change)
{
	journal->at.change = change;
	random_bytes(journal->at.digest.bytes, sizeof(journal->at.digest.bytes));
	journal->points[change % POINTS] = journal->at;
	journal->is_anew = true;
	journal->anew_from = change;
	journal->lacks_snapshot = true;
	turn(journal);
}

static void journal_take(void *owner, const struct db_record *record)
{
	struct journal *journal = owner;
	struct error err = {0};
	lock_enter(&journal->lock);
	if (record->change != journal->at.change + 1)
		begin_anew(journal, record->change - 1);
	if (journal->end >= LOG_MAX_BYTES)
		turn(journal);
	journal->has_taken = (journal->current.fd >= 0 || begin_log(journal, &err) == 0) &&
		write_record(journal, record, &err) == 0;
	const bool is_told = journal->lacks_snapshot;
	if (!journal->has_taken)
		begin_anew(journal, journal->at.change);
	lock_leave(&journal->lock);
	if (err.kind != ERROR_NONE && !is_told)
		log_failure(journal->options.log, LOG_ERROR, NULL, "journal_incomplete", &err);
}

static int begin_log(struct journal *journal, struct error *err)
{
	const struct file_ops *files = journal->options.files;
	struct journal_log *log = &journal->current;
	char name[JOURNAL_NAME_BYTES];
	journal_name_print(JOURNAL_LOG, journal->next_number, name);
	snprintf(log->path, sizeof(log->path), "%s/%s", journal->folder, name);
	log->fd = files->open(files, log->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, FILE_MODE);
	if (log->fd < 0)
		return error_set_errno(err, "%s cannot be made", log->path);
	log->needs_name = true;
	journal->end = 0;
	if (write_header(journal, err) == 0) {
		journal->next_number++;
		journal->logs++;
		journal->is_anew = false;
		return 0;
	}
	close(log->fd);
	log->fd = -1;
	files->unlink(files, log->path);
	return -1;
}

static int write_header(struct journal *journal, struct error *err)
{
	struct journal_header header = {.life = journal->options.life,
		.number = journal->next_number,
		.schema = journal->options.schema,
		.made_ms = clock_wall_ms(),
		.point = journal->at,
		.is_anew = journal->is_anew};
	uint8_t bytes[JOURNAL_HEADER_BYTES];
	memcpy(header.store, journal->options.store, JOURNAL_STORE_BYTES);
	journal_header_encode(JOURNAL_LOG, &header, bytes);
	if (file_write_at(journal->options.files, journal->current.fd,
		    span_of(bytes, sizeof(bytes)), 0, journal->current.path, err) != 0)
		return -1;
	journal->end = sizeof(bytes);
	return 0;
}

static int write_record(struct journal *journal, const struct db_record *change, struct error *err)
{
	const struct file_ops *files = journal->options.files;
	struct journal_record record = {.bytes = (uint32_t)change->rows.len,
		.change = change->change,
		.sums = change->sums,
		.made_ms = clock_wall_ms()};
	uint8_t head[JOURNAL_RECORD_BYTES];
	ASSERT(change->rows.len <= UINT32_MAX);
	journal_record_encode(&record, &journal->at.digest, change->rows, head);
	journal->current.is_dirty = true;
	if (file_write_at(files, journal->current.fd, span_of(head, sizeof(head)), journal->end,
		    journal->current.path, err) != 0 ||
		file_write_at(files, journal->current.fd, change->rows,
			journal->end + (off_t)sizeof(head), journal->current.path, err) != 0)
		return -1;
	journal->taken = (struct journal_point){record.change, record.digest};
	journal->taken_end = journal->end + (off_t)(sizeof(head) + change->rows.len);
	journal->points[record.change % POINTS] = journal->taken;
	return 0;
}

/* A change in doubt stays: the next start may find it in the catalog. The next one goes to another
 * log, which follows on the change before it. */
static void journal_settle(void *owner, enum db_outcome outcome)
{
	struct journal *journal = owner;
	lock_enter(&journal->lock);
	/* without a record the next change finds that this one is missing */
	if (journal->has_taken && outcome == DB_COMMITTED) {
		journal->logged += (uint64_t)(journal->taken_end - journal->end);
		journal->end = journal->taken_end;
		journal->at = journal->taken;
	} else if (journal->has_taken && outcome == DB_ROLLED_BACK) {
		cut_back(journal);
	} else {
		turn(journal);
	}
	lock_leave(&journal->lock);
}

static void cut_back(struct journal *journal)
{
	const struct file_ops *files = journal->options.files;
	if (journal->current.fd >= 0 && /* else it was turned away from meanwhile */
		files->ftruncate(files, journal->current.fd, journal->end) != 0)
		turn(journal);
}

static void journal_lose(void *owner)
{
	struct journal *journal = owner;
	lock_enter(&journal->lock);
	begin_anew(journal, journal->at.change);
	lock_leave(&journal->lock);
}

static void turn(struct journal *journal)
{
	if (journal->current.fd < 0)
		return;
	journal->turned = memory_make_room(journal->turned, journal->turned_count,
		&journal->turned_capacity, sizeof(*journal->turned));
	journal->turned[journal->turned_count++] = journal->current;
	journal->current = (struct journal_log){.fd = -1};
}

/* Gives the logs to sync. The current one stays, and counts as synced: what is written from here on
 * makes it dirty again. */
static struct journal_log take_logs(
	struct journal *journal, struct journal_log **out_turned, size_t *out_count)
{
	lock_enter(&journal->lock);
	*out_turned = journal->turned;
	*out_count = journal->turned_count;
	journal->turned = NULL;
	journal->turned_count = 0;
	journal->turned_capacity = 0;
	const struct journal_log current = journal->current;
	journal->current.is_dirty = false;
	journal->current.needs_name = false;
	lock_leave(&journal->lock);
	return current;
}

static int sync_log(struct journal *journal, const struct journal_log *log, struct error *err)
{
	const struct file_ops *files = journal->options.files;
	if (log->is_dirty && file_sync(files, log->fd, log->path, err) != 0)
		return -1;
	return log->needs_name ? file_sync_name(files, log->path, err) : 0;
}

static void note_failed_sync(struct journal *journal, const struct error *err)
{
	log_failure(journal->options.log, LOG_ERROR, NULL, "journal_incomplete", err);
	journal_lose(journal);
}
