/* All points lie in one list, in the order of the files. A log that follows on a point of the list
 * cuts the list behind it; another one begins a stretch of its own. */
#include "storage/journal/journal_history.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "storage/journal/journal_reader.h"
#include "storage/journal/snapshot.h"

enum { PATH_BYTES = 4096 };
#define NO_FILE SIZE_MAX

struct history_point {
	struct journal_point point;
	uint64_t sums;
	int64_t made_ms;
	size_t file;  /* whose record it is, or whose header */
	uint64_t end; /* of that record or header in the file */
	bool begins;  /* it follows on nothing: the base of a log after a gap */
	size_t cause; /* then the file that could not be read before; NO_FILE: there is none */
};
struct history_file {
	char *path;
	struct error trouble; /* why it could not be read to its end; kind none: it could */
};
struct history_snapshot {
	size_t file;
	struct journal_header header;
	bool is_placed; /* `at` is its point */
	size_t at;
	size_t end; /* the last point that it leads to */
};

struct journal_history {
	struct history_file *files;
	size_t file_count;
	struct history_point *points;
	size_t point_count;
	size_t point_capacity;
	struct history_snapshot *snapshots;
	size_t snapshot_count;
	uint64_t life;
	int64_t last_change;
	uint64_t next_number;
	bool has_store; /* some file has a header that can be read */
	uint8_t store[JOURNAL_STORE_BYTES];
	size_t damaged;      /* snapshots */
	struct error damage; /* of the last one of them */
	size_t unread; /* the file that broke off since a log last followed on a point; NO_FILE */
};

static void learn_store(struct journal_history *history, const char *name, const char *folder);
static void read_file(struct journal_history *history, const char *name, const char *folder);
static bool is_of_store(const struct journal_history *history, const struct journal_header *header);
static void read_snapshot(struct journal_history *history, size_t file);
static void read_log(struct journal_history *history, size_t file);
static void take_base(
	struct journal_history *history, size_t file, const struct journal_point *base);
static size_t find_point(const struct journal_history *history, const struct journal_point *point);
static void add_point(struct journal_history *history, const struct history_point *point);
static void note_change(struct journal_history *history, int64_t change);
static void place_snapshots(struct journal_history *history);
static int journal_history_compare(const void *a, const void *b);
static void describe_gap(const struct journal_history *history,
	const struct history_snapshot *snapshot, char out[JOURNAL_GAP_BYTES]);
static size_t find_goal(const struct journal_history *history,
	const struct history_snapshot *snapshot, const struct journal_goal *goal);
static int give_logs(const struct journal_history *history, size_t from, size_t to,
	journal_part_fn *take, void *owner, struct error *err);
static int walk_log(const struct journal_history *history, size_t *inout_at, size_t end,
	journal_take_fn *take, void *owner, struct error *err);

struct journal_history *journal_history_read(const char *folder, struct error *err)
{
	char **names = NULL;
	size_t count = 0;
	if (file_exists(folder) && file_list(folder, &names, &count, err) != 0)
		return NULL;
	struct journal_history *history = memory_new(sizeof(*history));
	history->unread = NO_FILE;
	history->files = memory_new_array(count + 1, sizeof(*history->files));
	history->snapshots = memory_new_array(count + 1, sizeof(*history->snapshots));
	for (size_t i = count; i-- > 0 && !history->has_store;)
		learn_store(history, names[i], folder);
	for (size_t i = 0; i < count; i++)
		read_file(history, names[i], folder);
	if (names != NULL)
		file_names_free(names, count);
	place_snapshots(history);
	return history;
}

void journal_history_free(struct journal_history *history)
{
	if (history == NULL)
		return;
	for (size_t i = 0; i < history->file_count; i++)
		free(history->files[i].path);
	free(history->files);
	free(history->points);
	free(history->snapshots);
	free(history);
}

uint64_t journal_history_life(const struct journal_history *history)
{
	return history->life;
}

int64_t journal_history_last_change(const struct journal_history *history)
{
	return history->last_change;
}

uint64_t journal_history_next_number(const struct journal_history *history)
{
	return history->next_number;
}

size_t journal_history_damaged(const struct journal_history *history)
{
	return history->damaged;
}

const char *journal_history_damage(const struct journal_history *history)
{
	return history->damage.text;
}

size_t journal_history_snapshots(const struct journal_history *history)
{
	return history->snapshot_count;
}

void journal_history_way(
	const struct journal_history *history, size_t number, struct journal_way *out)
{
	ASSERT(number < history->snapshot_count);
	const struct history_snapshot *snapshot = &history->snapshots[number];
	*out = (struct journal_way){.snapshot = history->files[snapshot->file].path,
		.header = snapshot->header,
		.end = snapshot->header.point,
		.made_ms = snapshot->header.made_ms};
	describe_gap(history, snapshot, out->gap);
	if (!snapshot->is_placed || snapshot->end == snapshot->at)
		return;
	const struct history_point *end = &history->points[snapshot->end];
	out->records = snapshot->end - snapshot->at;
	out->end = end->point;
	out->sums = end->sums;
	out->made_ms = end->made_ms;
}

int journal_history_walk(const struct journal_history *history, const struct journal_way *way,
	journal_take_fn *take, void *owner, struct error *err)
{
	size_t at = find_point(history, &way->header.point) + 1;
	const size_t end = at + way->records;
	ASSERT(end <= history->point_count || way->records == 0);
	while (way->records > 0 && at < end)
		if (walk_log(history, &at, end, take, owner, err) != 0)
			return -1;
	return 0;
}

int journal_history_lead(const struct journal_history *history, size_t number,
	const struct journal_goal *goal, journal_part_fn *take, void *owner, struct error *err)
{
	ASSERT(number < history->snapshot_count);
	const struct history_snapshot *snapshot = &history->snapshots[number];
	const char *path = history->files[snapshot->file].path;
	uint64_t bytes;
	const bool is_there = snapshot->header.point.change == goal->change;
	const size_t to = is_there ? snapshot->at : find_goal(history, snapshot, goal);
	if (to == history->point_count && !is_there)
		return 0;
	if (file_size(path, &bytes, err) != 0 || take(owner, path, bytes, err) != 0)
		return -1;
	return give_logs(history, snapshot->at, to, take, owner, err) != 0 ? -1 : 1;
}

/* The store of the newest file whose header can be read. */
static void learn_store(struct journal_history *history, const char *name, const char *folder)
{
	char path[PATH_BYTES];
	enum journal_kind kind;
	uint64_t number;
	struct journal_header header;
	struct error ignored;
	if (!journal_name_parse(name, &kind, &number))
		return;
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	if (kind == JOURNAL_SNAPSHOT) {
		history->has_store = snapshot_read_header(path, &header, &ignored) == 0;
	} else {
		struct journal_reader *reader = journal_reader_open(path, &header, &ignored);
		history->has_store = reader != NULL;
		journal_reader_close(reader);
	}
	if (history->has_store)
		memcpy(history->store, header.store, JOURNAL_STORE_BYTES);
}

static void read_file(struct journal_history *history, const char *name, const char *folder)
{
	char path[PATH_BYTES];
	enum journal_kind kind;
	uint64_t number;
	if (!journal_name_parse(name, &kind, &number))
		return;
	if (number >= history->next_number)
		history->next_number = number + 1;
	const size_t file = history->file_count++;
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	history->files[file].path = memory_copy_text(path);
	(kind == JOURNAL_SNAPSHOT ? read_snapshot : read_log)(history, file);
}

static void read_snapshot(struct journal_history *history, size_t file)
{
	struct history_snapshot *snapshot = &history->snapshots[history->snapshot_count];
	struct history_file *source = &history->files[file];
	if (snapshot_read_header(source->path, &snapshot->header, &source->trouble) != 0) {
		history->damaged++;
		history->damage = source->trouble;
		return;
	}
	if (!is_of_store(history, &snapshot->header))
		return;
	snapshot->file = file;
	note_change(history, snapshot->header.point.change);
	history->snapshot_count++;
	history->life =
		snapshot->header.life > history->life ? snapshot->header.life : history->life;
}

static bool is_of_store(const struct journal_history *history, const struct journal_header *header)
{
	return memcmp(history->store, header->store, JOURNAL_STORE_BYTES) == 0;
}

static void read_log(struct journal_history *history, size_t file)
{
	struct history_file *source = &history->files[file];
	struct journal_header header;
	struct journal_record record;
	struct span rows;
	struct journal_reader *reader =
		journal_reader_open(source->path, &header, &source->trouble);
	if (reader == NULL) {
		history->unread = file;
		return;
	}
	if (!is_of_store(history, &header)) {
		journal_reader_close(reader);
		return;
	}
	history->life = header.life > history->life ? header.life : history->life;
	take_base(history, file, &header.point);
	while (journal_reader_next(reader, &record, &rows, &source->trouble) == 1)
		add_point(history,
			&(const struct history_point){.point = {record.change, record.digest},
				.sums = record.sums,
				.made_ms = record.made_ms,
				.file = file,
				.end = journal_reader_offset(reader)});
	if (source->trouble.kind != ERROR_NONE)
		history->unread = file;
	journal_reader_close(reader);
}

static void take_base(
	struct journal_history *history, size_t file, const struct journal_point *base)
{
	const size_t at = find_point(history, base);
	if (at < history->point_count)
		history->point_count = at + 1;
	else
		add_point(history,
			&(const struct history_point){.point = *base,
				.file = file,
				.end = JOURNAL_HEADER_BYTES,
				.begins = true,
				.cause = history->unread});
	history->unread = NO_FILE; /* what it lacked is settled, or a gap that is noted */
}

/* From the end, where it is found at once but for rare cases. */
static size_t find_point(const struct journal_history *history, const struct journal_point *point)
{
	for (size_t i = history->point_count; i-- > 0;)
		if (journal_point_equal(&history->points[i].point, point))
			return i;
	return history->point_count;
}

static void add_point(struct journal_history *history, const struct history_point *point)
{
	history->points = memory_make_room(history->points, history->point_count,
		&history->point_capacity, sizeof(*history->points));
	history->points[history->point_count++] = *point;
	note_change(history, point->point.change);
}

static void note_change(struct journal_history *history, int64_t change)
{
	if (change > history->last_change)
		history->last_change = change;
}

static void place_snapshots(struct journal_history *history)
{
	for (size_t i = 0; i < history->snapshot_count; i++) {
		struct history_snapshot *snapshot = &history->snapshots[i];
		snapshot->at = find_point(history, &snapshot->header.point);
		snapshot->is_placed = snapshot->at < history->point_count;
		snapshot->end = snapshot->at;
		while (snapshot->end + 1 < history->point_count &&
			!history->points[snapshot->end + 1].begins)
			snapshot->end++;
	}
	qsort(history->snapshots, history->snapshot_count, sizeof(*history->snapshots),
		journal_history_compare);
}

/* The one that leads furthest comes first, and of these the newest. A snapshot that no log knows
 * comes last. */
static int journal_history_compare(const void *a, const void *b)
{
	const struct history_snapshot *first = a;
	const struct history_snapshot *second = b;
	if (first->is_placed != second->is_placed)
		return first->is_placed ? -1 : 1;
	if (first->is_placed && first->end != second->end)
		return first->end > second->end ? -1 : 1;
	return first->header.number > second->header.number ? -1 : 1;
}

/* Why nothing follows on the end: a file that could not be read, or a log that follows on
 * nothing. */
static void describe_gap(const struct journal_history *history,
	const struct history_snapshot *snapshot, char out[JOURNAL_GAP_BYTES])
{
	const size_t next = snapshot->end + 1;
	const bool is_last = next >= history->point_count;
	struct error gap = {0};
	if (!snapshot->is_placed)
		return;
	const size_t cause = is_last ? history->unread : history->points[next].cause;
	if (cause != NO_FILE)
		gap = history->files[cause].trouble;
	else if (!is_last)
		error_set(&gap, ERROR_CORRUPT,
			"%s begins behind change %" PRId64 ", to which nothing before it leads.",
			history->files[history->points[next].file].path,
			history->points[next].point.change);
	snprintf(out, JOURNAL_GAP_BYTES, "%s", gap.text);
}

/* The point of the goal, to which the snapshot leads; point_count when there is none. The changes
 * of a stretch follow on one another. */
static size_t find_goal(const struct journal_history *history,
	const struct history_snapshot *snapshot, const struct journal_goal *goal)
{
	const int64_t after = goal->change - snapshot->header.point.change;
	if (!snapshot->is_placed || after <= 0 || (uint64_t)after > snapshot->end - snapshot->at)
		return history->point_count;
	const size_t at = snapshot->at + (size_t)after;
	const struct history_point *point = &history->points[at];
	return point->point.change == goal->change && point->sums == goal->sums
		? at
		: history->point_count;
}

/* Each log that has a point behind `from` and up to `to`, up to the last such point. */
static int give_logs(const struct journal_history *history, size_t from, size_t to,
	journal_part_fn *take, void *owner, struct error *err)
{
	for (size_t i = from + 1; i <= to && to < history->point_count; i++) {
		const struct history_point *point = &history->points[i];
		const bool is_last = i == to || history->points[i + 1].file != point->file;
		if (is_last && take(owner, history->files[point->file].path, point->end, err) != 0)
			return -1;
	}
	return 0;
}

/* Gives the records of one log that are points of the way. */
static int walk_log(const struct journal_history *history, size_t *inout_at, size_t end,
	journal_take_fn *take, void *owner, struct error *err)
{
	const size_t file = history->points[*inout_at].file;
	const char *path = history->files[file].path;
	struct journal_header header;
	struct journal_record record;
	struct span rows;
	const size_t before = *inout_at;
	int result = 0;
	struct journal_reader *reader = journal_reader_open(path, &header, err);
	if (reader == NULL)
		return -1;
	while (result == 0 && *inout_at < end && history->points[*inout_at].file == file &&
		(result = journal_reader_next(reader, &record, &rows, err)) == 1) {
		const struct journal_point found = {record.change, record.digest};
		result = 0;
		if (!journal_point_equal(&found, &history->points[*inout_at].point))
			continue;
		result = take(owner, rows, err);
		++*inout_at;
	}
	journal_reader_close(reader);
	if (result == 0 && *inout_at == before)
		return error_set(err, ERROR_CORRUPT, "%s has changed while it was read.", path);
	return result;
}
