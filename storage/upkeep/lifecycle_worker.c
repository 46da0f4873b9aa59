/* A bucket is walked up to three times, once for each kind of work that its rules can make. Each
 * slice reads some hundred rows, gives the reader back, and sends what is due to the committer in
 * groups of up to LIFECYCLE_CHANGE_ITEMS. A damaged row fails its group, whose items then go one by
 * one, so that it keeps no other from going. */
#include "storage/upkeep/lifecycle_worker.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/memory.h"
#include "base/thread/worker_thread.h"
#include "storage/buckets/lifecycle_document.h"
#include "storage/core/store.h"
#include "storage/upkeep/lifecycle_change.h"
#include "storage/upkeep/lifecycle_scan.h"
#include "storage/uploads/upload_row.h"

enum {
	SLICE_ROWS = 500,
	SLICE_ARENA_BYTES = 32 * 1024 * 1024,
	RULES_ARENA_BYTES = 16 * 1024 * 1024
};

struct lifecycle_worker {
	struct store *store;
	int64_t interval_ms;
	int64_t day_ms;
	struct worker_thread thread;
};

struct walk {
	struct store *store;
	/* the walk ends when this thread stops; NULL: it runs to its end */
	const struct worker_thread *thread;
	struct lifecycle_clock clock;
	int64_t bucket;
	struct lifecycle lifecycle;
	uint64_t removed;
	struct error damage; /* the last failure because of a damaged row */
};
struct slice {
	struct arena *arena;
	struct lifecycle_item items[SLICE_ROWS];
	size_t count;
	bool more;
};
/* Where a walk stands between slices. The bytes of the key are here. */
struct place {
	uint8_t key[OBJECT_KEY_MAX_BYTES];
	struct lifecycle_position position;
	struct upload_id upload;
};

typedef int look_fn(struct walk *walk, struct db *db, struct place *place, struct slice *slice,
	struct error *err);

static struct walk walk_begin(struct store *store, int64_t day_ms);
static int walk_all(struct walk *walk, struct error *err);
static bool must_end(const struct walk *walk);
static bool is_stopping(const struct walk *walk);
static int next_bucket(
	struct walk *walk, struct arena *arena, struct span *out_document, struct error *err);
static int walk_bucket(
	struct walk *walk, struct span document, struct arena *arena, struct error *err);
static int run_slices(struct walk *walk, bool is_wanted, look_fn *look, struct error *err);
static int run_slice(struct walk *walk, look_fn *look, struct place *place, struct slice *slice,
	struct error *err);
static int remove_found(struct walk *walk, const struct slice *slice, struct error *err);
static int remove_group(
	struct walk *walk, const struct lifecycle_item *items, size_t count, struct error *err);
static int lifecycle_look_at_current(struct walk *walk, struct db *db, struct place *place,
	struct slice *slice, struct error *err);
static struct lifecycle_scan scan_from(const struct walk *walk, const struct place *place,
	const struct slice *slice, struct lifecycle_row *rows);
static int subject_of(const struct lifecycle_row *row, struct arena *arena,
	struct lifecycle_subject *out, struct error *err);
static void add_version(struct slice *slice, enum lifecycle_kind kind, int64_t sequence);
static void set_place(struct place *place, struct span key, int64_t sequence);
static int lifecycle_look_at_older(struct walk *walk, struct db *db, struct place *place,
	struct slice *slice, struct error *err);
static int lifecycle_look_at_uploads(struct walk *walk, struct db *db, struct place *place,
	struct slice *slice, struct error *err);
static int64_t lifecycle_round(void *owner);
static void walk_and_log(struct lifecycle_worker *worker);

int lifecycle_worker_walk(
	struct store *store, int64_t day_ms, uint64_t *out_removed, struct error *err)
{
	struct walk walk = walk_begin(store, day_ms);
	const int result = walk_all(&walk, err);
	*out_removed = walk.removed;
	return result;
}

struct lifecycle_worker *lifecycle_worker_start(
	struct store *store, int64_t interval_ms, int64_t day_ms)
{
	const struct worker_thread_plan plan = {
		.name = "lifecycle", .first_ms = interval_ms, .round = lifecycle_round};
	struct lifecycle_worker *const worker = memory_new(sizeof(*worker));
	worker->store = store;
	worker->interval_ms = interval_ms;
	worker->day_ms = day_ms;
	work_notes_set(store_work_notes(store), WORK_LIFECYCLE, WORK_RESTING, "%s", "");
	worker_thread_start(&worker->thread, &plan, worker);
	return worker;
}

void lifecycle_worker_stop(struct lifecycle_worker *worker)
{
	if (worker == NULL)
		return;
	worker_thread_stop(&worker->thread);
	worker_thread_release(&worker->thread);
	free(worker);
}

static struct walk walk_begin(struct store *store, int64_t day_ms)
{
	ASSERT(store != NULL && day_ms > 0);
	return (struct walk){.store = store, .clock = {store_now_ms(store), day_ms}};
}

/* One bucket that fails does not keep the others waiting; the last failure is reported. */
static int walk_all(struct walk *walk, struct error *err)
{
	int result = 0;
	int found = 1;
	while (found == 1 && !must_end(walk)) {
		struct arena *const arena = arena_new(RULES_ARENA_BYTES);
		struct span document;
		found = next_bucket(walk, arena, &document, err);
		if (found < 0 || (found == 1 && walk_bucket(walk, document, arena, err) != 0))
			result = -1;
		arena_free(arena);
	}
	if (result == 0 && walk->damage.kind != ERROR_NONE) {
		*err = walk->damage;
		result = -1;
	}
	return result;
}

/* Asked before each slice and each group that goes: the catalog's proof may be in doubt since. */
static bool must_end(const struct walk *walk)
{
	return is_stopping(walk) || !store_may_delete(walk->store);
}

static bool is_stopping(const struct walk *walk)
{
	return walk->thread != NULL && worker_thread_is_stopping(walk->thread);
}

static int next_bucket(
	struct walk *walk, struct arena *arena, struct span *out_document, struct error *err)
{
	struct db *const db = store_reader_take(walk->store, err);
	if (db == NULL)
		return -1;
	const int found =
		lifecycle_scan_bucket(db, walk->bucket, arena, &walk->bucket, out_document, err);
	store_reader_give(walk->store, db);
	return found;
}

static int walk_bucket(
	struct walk *walk, struct span document, struct arena *arena, struct error *err)
{
	if (lifecycle_document_parse(document, arena, &walk->lifecycle, err) != 0)
		return -1;
	const struct lifecycle_work work = lifecycle_work_of(&walk->lifecycle);
	if (run_slices(walk, work.current, lifecycle_look_at_current, err) != 0)
		return -1;
	if (run_slices(walk, work.noncurrent, lifecycle_look_at_older, err) != 0)
		return -1;
	return run_slices(walk, work.uploads, lifecycle_look_at_uploads, err);
}

static int run_slices(struct walk *walk, bool is_wanted, look_fn *look, struct error *err)
{
	struct place *const place = memory_new(sizeof(*place));
	struct slice *const slice = memory_new(sizeof(*slice));
	int result = 0;
	slice->more = is_wanted;
	while (result == 0 && slice->more && !must_end(walk)) {
		slice->arena = arena_new(SLICE_ARENA_BYTES);
		result = run_slice(walk, look, place, slice, err);
		arena_free(slice->arena);
	}
	free(slice);
	free(place);
	return result;
}

static int run_slice(struct walk *walk, look_fn *look, struct place *place, struct slice *slice,
	struct error *err)
{
	struct db *const db = store_reader_take(walk->store, err);
	if (db == NULL)
		return -1;
	slice->count = 0;
	slice->more = false;
	const int looked = look(walk, db, place, slice, err);
	store_reader_give(walk->store, db);
	ASSERT(slice->count <= SLICE_ROWS);
	return looked != 0 ? -1 : remove_found(walk, slice, err);
}

static int remove_found(struct walk *walk, const struct slice *slice, struct error *err)
{
	for (size_t from = 0; from < slice->count && !must_end(walk);
		from += LIFECYCLE_CHANGE_ITEMS) {
		const size_t left = slice->count - from;
		const size_t count = left < LIFECYCLE_CHANGE_ITEMS ? left : LIFECYCLE_CHANGE_ITEMS;
		if (remove_group(walk, &slice->items[from], count, err) != 0)
			return -1;
	}
	return 0;
}

/* When a damaged row fails the group, each item goes alone, and the failure of that row is reported
 * at the end of the walk. */
static int remove_group(
	struct walk *walk, const struct lifecycle_item *items, size_t count, struct error *err)
{
	struct error why = {0};
	const struct lifecycle_batch batch = {.bucket = walk->bucket,
		.day_ms = walk->clock.day_ms,
		.items = items,
		.count = count};
	ASSERT(count > 0);
	if (lifecycle_change_run(walk->store, &batch, &walk->removed, &why) == 0)
		return 0;
	if (why.kind != ERROR_CORRUPT) {
		*err = why;
		return -1;
	}
	if (count == 1)
		walk->damage = why;
	for (size_t i = 0; count > 1 && i < count; i++)
		if (remove_group(walk, &items[i], 1, err) != 0)
			return -1;
	return 0;
}

static int lifecycle_look_at_current(struct walk *walk, struct db *db, struct place *place,
	struct slice *slice, struct error *err)
{
	struct lifecycle_row *const rows =
		arena_take_array(slice->arena, SLICE_ROWS, sizeof(*rows));
	struct lifecycle_scan scan = scan_from(walk, place, slice, rows);
	if (lifecycle_scan_current(db, &scan, err) != 0)
		return -1;
	for (size_t i = 0; i < scan.count; i++) {
		const struct lifecycle_rule *rule;
		struct lifecycle_subject subject;
		int64_t due_ms = 0;
		const int read = subject_of(&rows[i], slice->arena, &subject, err);
		if (read < 0)
			return -1;
		if (read == 1)
			continue;
		if (rows[i].is_marker ? lifecycle_removes_marker(&walk->lifecycle, rows[i].key,
						rows[i].since_ms, &walk->clock)
				      : lifecycle_expires(&walk->lifecycle, &subject,
						walk->clock.day_ms, &due_ms, &rule) &&
					due_ms <= walk->clock.now_ms)
			add_version(slice, LIFECYCLE_CURRENT, rows[i].sequence);
	}
	slice->more = scan.count == SLICE_ROWS;
	if (scan.count > 0)
		set_place(place, rows[scan.count - 1].key, 0);
	return 0;
}

static struct lifecycle_scan scan_from(const struct walk *walk, const struct place *place,
	const struct slice *slice, struct lifecycle_row *rows)
{
	return (struct lifecycle_scan){.bucket = walk->bucket,
		.from = &place->position,
		.arena = slice->arena,
		.rows = rows,
		.limit = SLICE_ROWS};
}

/* 1: the row is damaged; it is not removed here, and keeps no other from going. */
static int subject_of(const struct lifecycle_row *row, struct arena *arena,
	struct lifecycle_subject *out, struct error *err)
{
	struct tag *tags;
	*out = (struct lifecycle_subject){
		.key = row->key, .size = row->size, .since_ms = row->since_ms};
	const int result = tag_set_read(row->tags, arena, &tags, &out->tag_count, err);
	out->tags = tags;
	return result != 0 && err->kind == ERROR_CORRUPT ? 1 : result;
}

static void add_version(struct slice *slice, enum lifecycle_kind kind, int64_t sequence)
{
	ASSERT(slice->count < SLICE_ROWS);
	slice->items[slice->count++] = (struct lifecycle_item){.kind = kind, .sequence = sequence};
}

static void set_place(struct place *place, struct span key, int64_t sequence)
{
	const size_t len = key.len < sizeof(place->key) ? key.len : sizeof(place->key);
	for (size_t i = 0; i < len; i++)
		place->key[i] = key.data[i];
	place->position.key = span_of(place->key, len);
	place->position.sequence = sequence;
}

static int lifecycle_look_at_older(struct walk *walk, struct db *db, struct place *place,
	struct slice *slice, struct error *err)
{
	struct lifecycle_row *const rows =
		arena_take_array(slice->arena, SLICE_ROWS, sizeof(*rows));
	struct lifecycle_scan scan = scan_from(walk, place, slice, rows);
	if (lifecycle_scan_older(db, &scan, err) != 0)
		return -1;
	struct span key = place->position.key;
	uint32_t newer = place->position.newer;
	for (size_t i = 0; i < scan.count; i++) {
		struct lifecycle_subject subject;
		newer = span_equal(rows[i].key, key) ? newer : 0;
		key = rows[i].key;
		const int read = subject_of(&rows[i], slice->arena, &subject, err);
		if (read < 0)
			return -1;
		if (read == 0 &&
			lifecycle_removes_noncurrent(
				&walk->lifecycle, &subject, newer, &walk->clock))
			add_version(slice, LIFECYCLE_OLDER, rows[i].sequence);
		newer++;
	}
	slice->more = scan.count == SLICE_ROWS;
	if (scan.count > 0)
		set_place(place, rows[scan.count - 1].key, rows[scan.count - 1].sequence);
	place->position.newer = newer;
	return 0;
}

static int lifecycle_look_at_uploads(struct walk *walk, struct db *db, struct place *place,
	struct slice *slice, struct error *err)
{
	struct db_statement *const scan =
		upload_row_scan(db, walk->bucket, place->position.key, &place->upload, err);
	struct upload_row row = {.number = 0};
	size_t seen = 0;
	int got = -1;
	while (seen < SLICE_ROWS && (got = db_step(scan, err)) == 1) {
		upload_row_read(scan, slice->arena, &row);
		if (lifecycle_aborts(&walk->lifecycle, row.key, row.created_ms, &walk->clock))
			slice->items[slice->count++] = (struct lifecycle_item){
				.kind = LIFECYCLE_UPLOAD, .key = row.key, .upload = row.id};
		seen++;
	}
	db_reset(scan);
	slice->more = seen == SLICE_ROWS;
	if (seen > 0)
		set_place(place, row.key, 0);
	place->upload = row.id;
	return got < 0 ? -1 : 0;
}

static int64_t lifecycle_round(void *owner)
{
	struct lifecycle_worker *const worker = owner;
	walk_and_log(worker);
	return worker->interval_ms;
}

static void walk_and_log(struct lifecycle_worker *worker)
{
	struct walk walk = walk_begin(worker->store, worker->day_ms);
	struct log *const log = store_log(worker->store);
	struct error err = {0};
	struct work_notes *const notes = store_work_notes(worker->store);
	walk.thread = &worker->thread;
	work_notes_set(notes, WORK_LIFECYCLE, WORK_WORKING, "walks the buckets that have rules");
	if (walk_all(&walk, &err) != 0 && log != NULL && !is_stopping(&walk))
		log_failure(log, LOG_WARNING, NULL, "lifecycle_failed",
			&err); /* what is due stays due */
	if (walk.removed > 0 && log != NULL) {
		const struct log_field field = log_number("removed", (int64_t)walk.removed);
		log_event(log, LOG_INFO, NULL, "lifecycle", &field, 1);
	}
	work_notes_set(notes, WORK_LIFECYCLE, WORK_RESTING,
		"its last walk removed %llu versions and uploads",
		(unsigned long long)walk.removed);
}
