/* A round lists packs, collects those with work to do in groups of GC_GROUP, and walks each group
 * through its stages (gc_pack.h). A group that cannot advance for a while is closed, and another
 * round takes its packs up: one long download never holds up the others. Requests queue for the
 * thread; it answers all of them before it makes a round of its own. */
#include "storage/upkeep/gc.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/quantity.h"
#include "base/thread/worker_thread.h"
#include "storage/core/committer.h"
#include "storage/core/pack_row.h"
#include "storage/core/removal_row.h"
#include "storage/core/store.h"
#include "storage/journal/journal.h"
#include "storage/packs/pack_store_parts.h"
#include "storage/packs/store_health.h"
#include "storage/upkeep/gc_pack.h"
#include "storage/upkeep/gc_registered.h"
#include "storage/upkeep/sweeper.h"

enum {
	GC_GROUP = 64,    /* packs that are worked on at a time */
	GC_NUMBERS = 256, /* packs, or files, that are listed at a time */
	GC_LIVE_PERCENT = 50,
	GC_ASKED_PERCENT = 90,
	GC_STEP_MS = 10,                  /* between two looks at packs that wait */
	GC_PATIENCE_MS = 1000,            /* for a group that does not advance */
	GC_ASKED_PATIENCE_MS = 10 * 1000, /* the same in a requested round */
	GC_WHOLE_ROUND_MS = 24 * 60 * 60 * 1000,
	GC_VACUUM_PAGES = 256,        /* in one change */
	GC_VACUUM_FROM_PAGES = 1024,  /* fewer free pages will soon be used again */
	GC_WHOLE_VACUUM_PAGES = 16384 /* larger catalogs would hold up commits for long */
};

struct asked_round {
	struct call call; /* first */
	struct gc *gc;
	struct gc_request request;
	struct asked_round *next; /* the queue's */
};

struct gc {
	struct store *store;
	struct gc_options options;
	struct worker_thread thread;
	struct asked_round *first; /* guarded by the thread's lock */
	struct asked_round *last;  /* guarded by the thread's lock */
	struct gc_request ended;   /* guarded by the thread's lock */
	int64_t ended_ms;          /* guarded by the thread's lock; 0: no round has ended */
	/* used by the thread only: */
	int64_t look_due_ms;
	int64_t whole_round_due_ms;
};

struct removals {
	struct change change; /* first */
	const struct pack_id *files;
	size_t count;
};

typedef int next_fn(
	struct gc *gc, int64_t after, int64_t *numbers, size_t *out_count, struct error *err);

static int64_t gc_round(void *owner);
static bool answer_all(struct gc *gc);
static struct asked_round *take_asked(struct gc *gc);
static void refuse(struct asked_round *asked);
static void answer(struct gc *gc, struct asked_round *asked);
static int run_request(struct gc *gc, struct gc_request *request, struct error *err);
static struct gc_work work_of(struct gc *gc, struct gc_report *report);
static bool gc_spend(void *owner, size_t bytes);
static int await_proof(struct gc *gc, struct error *err);
static int check_goes_on(struct gc *gc, struct error *err);
static int drop_leftovers(struct gc *gc, struct gc_request *request, struct error *err);
static int end_registered(struct gc *gc, struct gc_report *report, struct error *err);
static int sweep(struct gc *gc, struct gc_report *report, struct error *err);
static void note_rest(struct gc *gc);
static void note_work(struct gc *gc, const struct gc_work *work);
static int run_round(struct gc *gc, const struct gc_work *work, next_fn *next, struct error *err);
static int work_on(struct gc *gc, const struct gc_work *work, const int64_t *numbers, size_t count,
	struct error *err);
static int group_work(
	struct gc *gc, const struct gc_work *work, struct gc_pack *group, struct error *err);
static bool group_advance(const struct gc_work *work, struct gc_pack **group);
static void group_close(const struct gc_work *work, struct gc_pack **group);
static int finish_removals(struct gc *gc, struct error *err);
static int list_removals(
	struct gc *gc, struct pack_id **out_files, size_t *out_count, struct error *err);
static int remove_files(
	struct gc *gc, struct pack_id *files, size_t *inout_count, struct error *err);
static int gc_apply_removals(struct change *change, struct db *db, struct error *err);
static int gc_next_of_all(
	struct gc *gc, int64_t after, int64_t *numbers, size_t *out_count, struct error *err);
static int forget_gone(struct gc *gc, struct error *err);
static int trim(struct gc *gc, const struct gc_work *work, struct error *err);
static int trim_catalog(struct gc *gc, int64_t from_pages, struct error *err);
static int free_pages(struct gc *gc, int64_t *out_pages, struct error *err);
static int gc_apply_vacuum(struct change *change, struct db *db, struct error *err);
static int shrink_catalog(struct gc *gc, bool changed, struct error *err);
static int vacuum_catalog(struct gc *gc, struct db *db, struct error *err);
static void log_round(struct gc *gc, const struct gc_report *report);
static void own_round(struct gc *gc);
static void note_round(struct gc *gc, const struct gc_request *request);
static int gc_next_touched(
	struct gc *gc, int64_t after, int64_t *numbers, size_t *out_count, struct error *err);
static void gc_refuse_all(void *owner);
static void gc_begin(struct call *call);

static const struct call_kind kind = {.stages = {{.begin = gc_begin}}};

struct gc *gc_start(struct store *store, const struct gc_options *options)
{
	const int64_t first_ms = options->interval_s > 0 ? (int64_t)options->interval_s * 1000
							 : WORKER_THREAD_UNTIL_WOKEN;
	const struct worker_thread_plan plan = {
		.name = "gc", .first_ms = first_ms, .round = gc_round, .last = gc_refuse_all};
	struct gc *const gc = memory_new(sizeof(*gc));
	ASSERT(store != NULL && options->live_percent <= 100);
	gc->store = store;
	gc->options = *options;
	note_rest(gc);
	worker_thread_start(&gc->thread, &plan, gc);
	return gc;
}

void gc_quiesce(struct gc *gc)
{
	worker_thread_quiesce(&gc->thread);
}

void gc_stop(struct gc *gc)
{
	if (gc == NULL)
		return;
	worker_thread_stop(&gc->thread);
	ASSERT(gc->first == NULL); /* gc_refuse_all has answered the last ones */
	worker_thread_release(&gc->thread);
	free(gc);
}

struct call *gc_call(struct gc *gc, const struct gc_request *request)
{
	ASSERT(gc != NULL && request != NULL);
	struct asked_round *const asked = call_new(sizeof(*asked), &kind, gc->store, 0);
	asked->gc = gc;
	asked->request = *request;
	return &asked->call;
}

const struct gc_request *gc_result(const struct call *call)
{
	return &((const struct asked_round *)call)->request;
}

int gc_run(struct gc *gc, struct gc_request *request, struct error *err)
{
	struct call *const call = gc_call(gc, request);
	const int result = call_run(call, err);
	*request = *gc_result(call);
	call_free(call);
	return result;
}

bool gc_last(struct gc *gc, struct gc_request *out, int64_t *out_ended_ms)
{
	lock_enter(&gc->thread.lock);
	*out = gc->ended;
	*out_ended_ms = gc->ended_ms;
	lock_leave(&gc->thread.lock);
	return *out_ended_ms != 0;
}

/* Answers requests or else, when it is due, makes a round of its own. The next one is due an
 * interval after either. */
static int64_t gc_round(void *owner)
{
	struct gc *const gc = owner;
	const int64_t interval_ms = (int64_t)gc->options.interval_s * 1000;
	const bool answered = answer_all(gc);
	const bool is_due = interval_ms > 0 && clock_monotonic_ms() >= gc->look_due_ms;
	if (!answered && is_due && store_may_delete(gc->store))
		own_round(gc);
	if (answered || is_due)
		gc->look_due_ms = clock_monotonic_ms() + interval_ms;
	const int64_t left = gc->look_due_ms - clock_monotonic_ms();
	return interval_ms == 0 ? WORKER_THREAD_UNTIL_WOKEN : left > 0 ? left : 0;
}

static bool answer_all(struct gc *gc)
{
	struct asked_round *asked;
	bool any = false;
	while ((asked = take_asked(gc)) != NULL) {
		if (worker_thread_is_stopping(&gc->thread))
			refuse(asked);
		else
			answer(gc, asked);
		any = true;
	}
	return any;
}

static struct asked_round *take_asked(struct gc *gc)
{
	lock_enter(&gc->thread.lock);
	struct asked_round *const asked = gc->first;
	if (asked != NULL)
		gc->first = asked->next;
	if (gc->first == NULL)
		gc->last = NULL;
	lock_leave(&gc->thread.lock);
	return asked;
}

static void refuse(struct asked_round *asked)
{
	struct error err;
	error_set(&err, ERROR_BUSY, "The store is closing.");
	call_resume(&asked->call, &err);
}

static void answer(struct gc *gc, struct asked_round *asked)
{
	struct error err = {0};
	const int64_t begun_us = clock_monotonic_us();
	const int result = run_request(gc, &asked->request, &err);
	if (!asked->request.dry_run) {
		metrics_work(store_metrics(gc->store), METRIC_WORK_GC_ROUND, begun_us);
		log_round(gc, &asked->request.report);
		if (result == 0)
			note_round(gc, &asked->request);
	}
	note_rest(gc);
	call_resume(&asked->call, result != 0 ? &err : NULL);
}

static int run_request(struct gc *gc, struct gc_request *request, struct error *err)
{
	struct gc_work work = work_of(gc, &request->report);
	ASSERT(request->live_percent <= 100);
	request->report = (struct gc_report){0};
	work.live_percent = request->live_percent != 0 ? request->live_percent : GC_ASKED_PERCENT;
	work.dry_run = request->dry_run;
	work.ends_promises = request->ends_promises;
	work.is_asked = true;
	if (await_proof(gc, err) != 0 || drop_leftovers(gc, request, err) != 0 ||
		run_round(gc, &work, gc_next_of_all, err) != 0)
		return -1;
	return gc_registered_bytes(gc->store, &request->report.bytes_registered, err);
}

static struct gc_work work_of(struct gc *gc, struct gc_report *report)
{
	return (struct gc_work){
		.store = gc->store,
		.report = report,
		.live_percent =
			gc->options.live_percent != 0 ? gc->options.live_percent : GC_LIVE_PERCENT,
		.promise_ms = gc->options.promise_ms,
		.pace = {.spend = gc_spend, .owner = gc},
	};
}

static bool gc_spend(void *owner, size_t bytes)
{
	struct gc *const gc = owner;
	return worker_thread_spend(&gc->thread, bytes, gc->options.bytes_per_second);
}

/* Waits for the check of the catalog that begins at the start; fails unless the catalog is
 * sound. */
static int await_proof(struct gc *gc, struct error *err)
{
	struct store_health *health = store_health(gc->store);
	while (store_health_proof(health) == STORE_UNPROVEN &&
		worker_thread_pause(&gc->thread, GC_STEP_MS))
		continue;
	return check_goes_on(gc, err);
}

/* Asked before anything is deleted: the catalog that the round began on may have been found damaged
 * since. */
static int check_goes_on(struct gc *gc, struct error *err)
{
	if (worker_thread_is_stopping(&gc->thread))
		return error_set(err, ERROR_BUSY, "The store is closing.");
	return store_health_check_delete(store_health(gc->store), err);
}

/* Removes rows that only keep space, before the packs are looked at. */
static int drop_leftovers(struct gc *gc, struct gc_request *request, struct error *err)
{
	if (request->dry_run)
		return 0;
	if (request->ends_promises && end_registered(gc, &request->report, err) != 0)
		return -1;
	return sweep(gc, &request->report, err);
}

/* Ends unused registered files; the sweeper may have to finish large ones. */
static int end_registered(struct gc *gc, struct gc_report *report, struct error *err)
{
	struct chunk_id after = {{0}};
	bool more = true;
	while (more) {
		struct xet_file_damage damage = {0};
		if (check_goes_on(gc, err) != 0 ||
			gc_registered_end(gc->store, &after, &more, &damage, err) != 0)
			return -1;
		report->rows_damaged += damage.rows;
		xet_file_tell_damage(gc->store, &damage);
	}
	return 0;
}

/* Sweeps first, because part sets that wait for the sweeper lead to chunks until it has been there.
 * A kind that cannot be swept keeps only its own packs. */
static int sweep(struct gc *gc, struct gc_report *report, struct error *err)
{
	struct sweep sweep = {0};
	bool more = true;
	while (more) {
		if (check_goes_on(gc, err) != 0)
			return -1;
		const int result = sweeper_slice(gc->store, &sweep, &more, err);
		if (result != 0 && err->kind == ERROR_BUSY)
			return error_set(err, ERROR_BUSY, "The store is closing.");
		report->sweeps_failed += result != 0;
		if (result != 0)
			log_failure(store_log(gc->store), LOG_WARNING, NULL, "sweep", err);
	}
	report->rows_damaged += sweep.rows_damaged;
	return 0;
}

/* Says what gc_last tells: dry runs and rounds that failed leave no trace. */
static void note_rest(struct gc *gc)
{
	struct work_notes *const notes = store_work_notes(gc->store);
	char freed[QUANTITY_TEXT_BYTES];
	struct gc_request last;
	int64_t ended_ms;
	if (!gc_last(gc, &last, &ended_ms)) {
		work_notes_set(notes, WORK_GC, WORK_RESTING, "%s", "");
		return;
	}
	quantity_format(last.report.bytes_freed, freed);
	work_notes_set(notes, WORK_GC, WORK_RESTING,
		"its last round looked at %llu packs and freed %s",
		(unsigned long long)last.report.packs, freed);
}

static void note_work(struct gc *gc, const struct gc_work *work)
{
	work_notes_set(store_work_notes(gc->store), WORK_GC, WORK_WORKING,
		"looked at %llu packs in this round", (unsigned long long)work->report->packs);
}

/* Works through all packs that `next` lists, then trims. */
static int run_round(struct gc *gc, const struct gc_work *work, next_fn *next, struct error *err)
{
	int64_t numbers[GC_NUMBERS];
	int64_t after = 0;
	size_t count = 0;
	bool any = false;
	note_work(gc, work);
	for (;;) {
		if (next(gc, after, numbers, &count, err) != 0)
			return -1;
		if (count == 0)
			break;
		any = true;
		if (work_on(gc, work, numbers, count, err) != 0)
			return -1;
		after = numbers[count - 1];
		note_work(gc, work);
	}
	if (!work->dry_run)
		metrics_set(store_metrics(gc->store), METRIC_GC_PACKS_WAITING,
			(int64_t)work->report->packs_waiting);
	if (work->dry_run)
		return 0;
	if (finish_removals(gc, err) != 0) /* a backup may have held some until now */
		return -1;
	if (!any)
		return 0;
	if ((next == gc_next_of_all && forget_gone(gc, err) != 0) || check_goes_on(gc, err) != 0)
		return -1;
	return trim(gc, work, err);
}

/* Looks at these packs, and works group by group on those with work to do. */
static int work_on(struct gc *gc, const struct gc_work *work, const int64_t *numbers, size_t count,
	struct error *err)
{
	struct gc_pack *group = NULL;
	size_t size = 0;
	ASSERT(count <= GC_NUMBERS);
	for (size_t i = 0; i < count; i++) {
		struct gc_pack *const pack = gc_pack_look(work, numbers[i]);
		if (worker_thread_is_stopping(&gc->thread)) {
			if (pack != NULL)
				gc_pack_close(work, pack);
			break;
		}
		if (pack != NULL) {
			pack->next = group;
			group = pack;
			size++;
		}
		if (size < GC_GROUP)
			continue;
		if (group_work(gc, work, group, err) != 0)
			return -1;
		group = NULL;
		size = 0;
	}
	return group_work(gc, work, group, err);
}

static int group_work(
	struct gc *gc, const struct gc_work *work, struct gc_pack *group, struct error *err)
{
	int64_t patience = work->is_asked ? GC_ASKED_PATIENCE_MS : GC_PATIENCE_MS;
	int result = 0;
	while (group != NULL && patience > 0 && (result = check_goes_on(gc, err)) == 0) {
		bool moved = group_advance(work, &group);
		int64_t ms = moved || group == NULL ? 0 : GC_STEP_MS;
		patience -= ms;
		(void)worker_thread_pause(&gc->thread, ms);
	}
	group_close(work, &group);
	ASSERT(group == NULL);
	return result;
}

/* Takes one step with each pack; false when none could take any. */
static bool group_advance(const struct gc_work *work, struct gc_pack **group)
{
	bool moved = false;
	for (struct gc_pack **link = group; *link != NULL;) {
		struct gc_pack *const pack = *link;
		moved |= gc_pack_advance(work, pack);
		if (pack->stage != GC_DONE) {
			link = &pack->next;
			continue;
		}
		*link = pack->next;
		gc_pack_close(work, pack);
	}
	return moved;
}

static void group_close(const struct gc_work *work, struct gc_pack **group)
{
	while (*group != NULL) {
		struct gc_pack *const pack = *group;
		*group = pack->next;
		work->report->packs_waiting += pack->stage != GC_DONE;
		gc_pack_close(work, pack);
	}
}

static int finish_removals(struct gc *gc, struct error *err)
{
	int result = 0;
	size_t listed = GC_NUMBERS;
	for (size_t gone = listed; result == 0 && listed == GC_NUMBERS && gone == listed;) {
		struct pack_id *files = NULL;
		result = list_removals(gc, &files, &listed, err);
		gone = listed;
		if (result == 0 && listed > 0)
			result = remove_files(gc, files, &gone, err);
		free(files);
	}
	return result;
}

static int list_removals(
	struct gc *gc, struct pack_id **out_files, size_t *out_count, struct error *err)
{
	struct db *db = store_reader_take(gc->store, err);
	if (db == NULL)
		return -1;
	int result = removal_row_list(db, GC_NUMBERS, out_files, out_count, err);
	store_reader_give(gc->store, db);
	return result;
}

/* Removes files that changes took out of use, for good, before the rows that name them go. First
 * the journal must have those changes for good, or a catalog made from it would name the files.
 * *inout_count becomes the number of files that went. A file that could not be removed, or that the
 * cache still reads from, or that a backup holds, keeps its row, and another round tries again. */
static int remove_files(
	struct gc *gc, struct pack_id *files, size_t *inout_count, struct error *err)
{
	struct pack_store *packs = store_packs(gc->store);
	struct removals removals = {.change = {.apply = gc_apply_removals}, .files = files};
	ASSERT(files != NULL && *inout_count <= GC_NUMBERS);
	if (check_goes_on(gc, err) != 0 || journal_sync(store_journal(gc->store), err) != 0)
		return -1;
	pack_cache_leave_out(packs->cache, files, inout_count);
	for (size_t i = 0; i < *inout_count; i++)
		if (pack_store_retire_files(packs, &files[i]))
			files[removals.count++] = files[i];
	*inout_count = removals.count;
	if (packs->backend->ops->sync_names(packs->backend, err) != 0)
		return -1;
	return removals.count == 0
		? 0
		: committer_run(store_committer(gc->store), &removals.change, err);
}

static int gc_apply_removals(struct change *change, struct db *db, struct error *err)
{
	const struct removals *removals = (struct removals *)change;
	for (size_t i = 0; i < removals->count; i++)
		if (removal_row_drop(db, &removals->files[i], err) != 0)
			return -1;
	return 0;
}

static int gc_next_of_all(
	struct gc *gc, int64_t after, int64_t *numbers, size_t *out_count, struct error *err)
{
	struct db *const db = store_reader_take(gc->store, err);
	if (db == NULL)
		return -1;
	const int result = pack_row_numbers(db, after, numbers, GC_NUMBERS, out_count, err);
	store_reader_give(gc->store, db);
	return result;
}

/* Forgets the chunk rows of packs that are gone, which a power cut may leave. */
static int forget_gone(struct gc *gc, struct error *err)
{
	struct chunk_index *const chunk_index = store_chunk_index(gc->store);
	struct pack_id *packs = NULL;
	size_t count = 0;
	if (chunk_index_packs(chunk_index, &packs, &count, err) != 0)
		return -1;
	int result = 0;
	for (size_t i = 0; i < count && result == 0; i++)
		if (!pack_cache_knows(store_packs(gc->store)->cache, &packs[i]))
			result = chunk_index_forget_pack(chunk_index, &packs[i], err);
	free(packs);
	return result;
}

/* Gives back the space of the catalog and of the chunk index. */
static int trim(struct gc *gc, const struct gc_work *work, struct error *err)
{
	if (trim_catalog(gc, work->is_asked ? 1 : GC_VACUUM_FROM_PAGES, err) != 0)
		return -1;
	if (chunk_index_trim(store_chunk_index(gc->store), err) != 0)
		return -1;
	const bool changed = work->report->packs_deleted + work->report->packs_compacted > 0;
	return work->is_asked ? shrink_catalog(gc, changed, err) : 0;
}

/* Gives the catalog's free pages back in slices, between which other changes get their turn. */
static int trim_catalog(struct gc *gc, int64_t from_pages, struct error *err)
{
	int64_t pages = 0;
	int64_t before = INT64_MAX;
	while (free_pages(gc, &pages, err) == 0) {
		if (pages < from_pages || pages >= before)
			return 0;
		before = pages;
		struct change change = {.apply = gc_apply_vacuum};
		if (committer_run(store_committer(gc->store), &change, err) != 0)
			return -1;
		if (!gc_spend(gc, GC_VACUUM_PAGES * 4096))
			return error_set(err, ERROR_BUSY, "The store is closing.");
	}
	return -1;
}

static int free_pages(struct gc *gc, int64_t *out_pages, struct error *err)
{
	struct db *const db = store_reader_take(gc->store, err);
	if (db == NULL)
		return -1;
	const int result = db_free_pages(db, out_pages, err);
	store_reader_give(gc->store, db);
	return result;
}

static int gc_apply_vacuum(struct change *change, struct db *db, struct error *err)
{
	(void)change;
	return db_vacuum_some(db, GC_VACUUM_PAGES, err);
}

/* Uses a connection of its own: neither statement can be part of a change. */
static int shrink_catalog(struct gc *gc, bool changed, struct error *err)
{
	struct db *const db = db_open(store_catalog_path(gc->store), DB_WRITE, err);
	if (db == NULL)
		return -1;
	int result = changed ? vacuum_catalog(gc, db, err) : 0;
	if (result == 0)
		result = db_checkpoint_truncate(db, err);
	db_close(db);
	return result;
}

/* Rewrites the catalog without pages that random deletes left half empty, where that does not hold
 * up commits for long. */
static int vacuum_catalog(struct gc *gc, struct db *db, struct error *err)
{
	int64_t pages = 0;
	if (db_pages(db, &pages, err) != 0)
		return -1;
	const bool may = gc->options.bytes_per_second == 0 || pages <= GC_WHOLE_VACUUM_PAGES;
	return may ? db_vacuum_whole(db, err) : 0;
}

static void log_round(struct gc *gc, const struct gc_report *report)
{
	if (report->packs_deleted + report->packs_compacted == 0)
		return;
	const struct log_field fields[] = {log_number("deleted", (int64_t)report->packs_deleted),
		log_number("compacted", (int64_t)report->packs_compacted),
		log_number("bytes_freed", (int64_t)report->bytes_freed)};
	log_event(store_log(gc->store), LOG_INFO, NULL, "gc", fields,
		sizeof(fields) / sizeof(fields[0]));
}

static void own_round(struct gc *gc)
{
	struct gc_request request = {.dry_run = false};
	struct error err = {0};
	const struct gc_work work = work_of(gc, &request.report);
	const bool is_whole = clock_monotonic_ms() >= gc->whole_round_due_ms;
	const int64_t begun_us = clock_monotonic_us();
	if (run_round(gc, &work, is_whole ? gc_next_of_all : gc_next_touched, &err) != 0) {
		if (err.kind != ERROR_BUSY)
			log_failure(store_log(gc->store), LOG_WARNING, NULL, "gc", &err);
	} else {
		if (is_whole)
			gc->whole_round_due_ms = clock_monotonic_ms() + GC_WHOLE_ROUND_MS;
		note_round(gc, &request);
	}
	metrics_work(store_metrics(gc->store), METRIC_WORK_GC_ROUND, begun_us);
	note_rest(gc);
	log_round(gc, &request.report);
}

static void note_round(struct gc *gc, const struct gc_request *request)
{
	const int64_t now_ms = store_now_ms(gc->store);
	lock_enter(&gc->thread.lock);
	gc->ended = *request;
	gc->ended_ms = now_ms;
	lock_leave(&gc->thread.lock);
}

static int gc_next_touched(
	struct gc *gc, int64_t after, int64_t *numbers, size_t *out_count, struct error *err)
{
	(void)err;
	*out_count = pack_touches_due(store_pack_touches(gc->store), after, numbers, GC_NUMBERS);
	return 0;
}

static void gc_refuse_all(void *owner)
{
	(void)answer_all(owner);
}

static void gc_begin(struct call *call)
{
	struct asked_round *const asked = (struct asked_round *)call;
	struct gc *const gc = asked->gc;
	ASSERT(asked->next == NULL);
	lock_enter(&gc->thread.lock);
	const bool refused = worker_thread_is_stopping(&gc->thread);
	if (!refused) {
		*(gc->last != NULL ? &gc->last->next : &gc->first) = asked;
		gc->last = asked;
	}
	lock_leave(&gc->thread.lock);
	if (refused)
		refuse(asked);
	else
		worker_thread_wake(&gc->thread);
}
