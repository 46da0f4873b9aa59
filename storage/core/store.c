/* Makes and ends the pieces of a store that do not depend on the rooms above, and gives access to
 * each. The order matters: packs before the catalog, because a start compares the two; the
 * committer last, because its changes use all of them. The end goes the other way. */
#include "storage/core/store_core.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/thread/lock.h"
#include "base/thread/step_watch.h"
#include "base/thread/worker_thread.h"
#include "storage/core/change_feed.h"
#include "storage/core/committer.h"
#include "storage/core/damage_book.h"
#include "storage/core/reader_pool.h"
#include "storage/core/run_feed.h"
#include "storage/ingest/ingest_spares.h"
#include "storage/packs/pack_store_parts.h"
#include "storage/packs/place_note.h"

enum { PUBLISH_LANES = 4 };

struct store {
	char *folder;
	struct disk_floor floor; /* of that folder's disk */
	const struct file_ops *files;
	const struct clock_source *clock;
	struct metrics *metrics;
	struct log *log;
	struct work_notes *notes;
	struct store_opened opened;
	bool fast_etags;
	struct store_health *health;
	struct helpers *helpers;
	struct helper_lane publish_lanes[PUBLISH_LANES];
	struct step_watch *watch;
	struct change_feed *change_feed;
	struct run_feed *run_feed;
	struct pack_touches *touches;

	bool needs_reindex; /* the chunk index is new and empty */
	struct chunk_index *chunk_index;
	struct ingest_spares *spares;
	struct backup_holds *holds;
	struct pack_store *packs;

	struct store_catalog catalog;
	struct committer *committer;
	struct damage_book *damage_book;
	struct reader_pool *readers;

	struct lock lock; /* guards the workers */
	struct worker_thread *workers[STORE_WORKS];
	struct store_parts *parts;
};

static char *path_in(const char *folder, const char *name);
static void open_chunk_index(struct store *store, const char *path, struct error *err);
static struct backend *open_backend(
	const struct store *store, const struct store_params *params, struct error *err);

struct store *store_new(const struct store_params *params)
{
	ASSERT(params->folder != NULL && params->files != NULL && params->clock != NULL);
	ASSERT(params->helper_threads > 0);
	struct store *const store = memory_new(sizeof(*store));
	lock_init(&store->lock, LOCK_WAKES);
	store->parts = memory_new(sizeof(*store->parts));
	store->folder = memory_copy_text(params->folder);
	store->files = params->files;
	store->clock = params->clock;
	store->metrics = params->metrics;
	store->log = params->log;
	store->notes = work_notes_new();
	store->fast_etags = params->fast_etags;
	store->opened = (struct store_opened){
		store->clock->wall_ms(store->clock), store->clock->monotonic_ms(store->clock)};
	store->health = store_health_new(params->log, params->metrics);
	store->floor = (struct disk_floor){.files = store->files,
		.folder = store->folder,
		.bytes = params->disk_reserve,
		.health = store->health};
	store->touches = pack_touches_new();
	store->readers = reader_pool_new();
	store->watch = step_watch_start(store->clock);
	store->change_feed = change_feed_new(
		&(struct change_feed_options){.clock = store->clock, .watch = store->watch});
	store->run_feed = run_feed_new();
	store->helpers = helpers_start(params->helper_threads);
	return store;
}

int store_open_packs(struct store *store, const struct store_params *params, struct error *err)
{
	ASSERT(store->packs == NULL);
	char *const chunks_path = path_in(store->folder, "chunks.db");
	open_chunk_index(store, chunks_path, err);
	free(chunks_path);
	struct backend *const backend =
		store->chunk_index == NULL ? NULL : open_backend(store, params, err);
	if (backend == NULL)
		return -1;
	store->spares = ingest_spares_new();
	store->holds = backup_holds_new(store->files, store->folder, store->clock, store->log);
	const struct pack_store_options options = {
		.backend = backend,
		.chunk_index = store->chunk_index,
		.spares = store->spares,
		.helpers = store->helpers,
		.metrics = store->metrics,
		.log = store->log,
		.floor = &store->floor,
		.holds = store->holds,
		.pack_max_bytes = params->pack_max_bytes,
		.clock = store->clock,
	};
	store->packs = pack_store_open(&options, err);
	return store->packs == NULL ? -1 : 0;
}

void store_fill_chunk_index(struct store *store)
{
	struct error err = {0};
	ASSERT(store->packs != NULL);
	if (store->needs_reindex && pack_store_reindex(store->packs, &err) != 0)
		chunk_index_give_up(store->chunk_index, &err);
}

void store_set_catalog(struct store *store, const struct store_catalog *catalog)
{
	ASSERT(catalog->path != NULL && store->catalog.path == NULL);
	store->catalog = *catalog;
}

void store_start_committer(struct store *store, struct db *db)
{
	const struct committer_options options = {.db = db,
		.packs = store->packs,
		.metrics = store->metrics,
		.health = store->health,
		.acknowledged = store->catalog.acknowledged,
		.journal = store->catalog.journal,
		.store = store->catalog.identity};
	ASSERT(store->packs != NULL && store->catalog.path != NULL && store->committer == NULL);
	db_set_context(db, DB_CONTEXT_PACK_TOUCHES, store->touches);
	db_set_context(db, DB_CONTEXT_CHANGE_FEED, store->change_feed);
	db_set_context(db, DB_CONTEXT_RUN_FEED, store->run_feed);
	store->committer = committer_start(&options);
	store->damage_book = damage_book_open(store);
}

void store_end_changes(struct store *store)
{
	reader_pool_close_idle(store->readers);
	damage_book_close(store->damage_book);
	committer_stop(store->committer); /* closing the last connection empties the log */
	journal_close(store->catalog.journal);
	acknowledged_close(store->catalog.acknowledged);
}

void store_end_helpers(struct store *store)
{
	helpers_stop(store->helpers); /* runs jobs of the last commits: packs to index */
	damage_book_free(store->damage_book);
	step_watch_stop(store->watch);
}

void store_free(struct store *store)
{
	change_feed_free(store->change_feed);
	run_feed_free(store->run_feed);
	if (store->packs != NULL)
		pack_store_close(store->packs);
	backup_holds_free(store->holds);
	ingest_spares_free(store->spares);
	if (store->chunk_index != NULL)
		chunk_index_close(store->chunk_index);
	pack_touches_free(store->touches);
	reader_pool_free(store->readers);
	work_notes_free(store->notes);
	lock_release(&store->lock);
	store_health_free(store->health);
	free(store->catalog.path);
	free(store->folder);
	free(store->parts);
	free(store);
}

struct store_parts *store_parts(const struct store *store)
{
	return store->parts;
}

struct store_health *store_health(const struct store *store)
{
	return store->health;
}

int store_check_room(const struct store *store, uint64_t bytes, struct error *err)
{
	return disk_floor_check_room(&store->floor, bytes, err);
}

uint64_t store_damage_mark(const struct store *store)
{
	return pack_damage_mark(store->packs->damage);
}

const struct disk_floor *store_disk_floor(const struct store *store)
{
	return &store->floor;
}

void store_measure_disk(const struct store *store)
{
	struct file_space space;
	if (store->files->space(store->files, store->folder, &space) != 0)
		return;
	metrics_set(store->metrics, METRIC_DISK_BYTES, (int64_t)space.all);
	metrics_set(store->metrics, METRIC_DISK_FREE_BYTES, (int64_t)space.free);
	metrics_set(store->metrics, METRIC_DISK_RESERVE_BYTES,
		(int64_t)disk_floor_kept(&store->floor, &space));
}

const char *store_folder(const struct store *store)
{
	return store->folder;
}

const struct file_ops *store_files(const struct store *store)
{
	return store->files;
}

const char *store_catalog_path(const struct store *store)
{
	return store->catalog.path;
}

const struct clock_source *store_clock(const struct store *store)
{
	return store->clock;
}

int64_t store_now_ms(const struct store *store)
{
	const struct clock_source *const clock = store_clock(store);
	return clock->wall_ms(clock);
}

struct store_opened store_opened(const struct store *store)
{
	return store->opened;
}

uint64_t store_life(const struct store *store)
{
	return store->catalog.identity.life;
}

bool store_fast_etags(const struct store *store)
{
	return store->fast_etags;
}

struct log *store_log(const struct store *store)
{
	return store->log;
}

struct work_notes *store_work_notes(const struct store *store)
{
	return store->notes;
}

struct metrics *store_metrics(const struct store *store)
{
	return store->metrics;
}

struct journal *store_journal(const struct store *store)
{
	return store->catalog.journal;
}

struct committer *store_committer(const struct store *store)
{
	return store->committer;
}

struct pack_store *store_packs(const struct store *store)
{
	return store->packs;
}

struct chunk_index *store_chunk_index(const struct store *store)
{
	return store->chunk_index;
}

struct backup_holds *store_backup_holds(const struct store *store)
{
	return store->holds;
}

struct pack_touches *store_pack_touches(const struct store *store)
{
	return store->touches;
}

struct helpers *store_helpers(const struct store *store)
{
	return store->helpers;
}

struct helper_lane *store_publish_lane(struct store *store, uint64_t hash)
{
	return &store->publish_lanes[hash % PUBLISH_LANES];
}

struct step_watch *store_step_watch(const struct store *store)
{
	return store->watch;
}

struct run_feed *store_run_feed(const struct store *store)
{
	return store->run_feed;
}

struct change_feed *store_change_feed(const struct store *store)
{
	return store->change_feed;
}

bool store_takes_work(const struct store *store)
{
	struct error ignored;
	return store_health_may_write(store->health, &ignored) == 0;
}

bool store_may_delete(const struct store *store)
{
	return store_health_may_delete(store->health);
}

struct db *store_reader_take(struct store *store, struct error *err)
{
	return reader_pool_take(store->readers, store->catalog.path, err);
}

void store_reader_give(struct store *store, struct db *reader)
{
	reader_pool_give(store->readers, reader);
}

struct db *store_snapshot_take(struct store *store, struct error *err)
{
	struct db *const reader = store_reader_take(store, err);
	if (reader == NULL || db_snapshot_begin(reader, err) == 0)
		return reader;
	store_reader_give(store, reader);
	return NULL;
}

void store_snapshot_give(struct store *store, struct db *reader)
{
	if (reader == NULL)
		return;
	db_snapshot_end(reader);
	store_reader_give(store, reader);
}

uint64_t store_readers_mark(struct store *store)
{
	return reader_pool_mark(store->readers);
}

bool store_readers_passed(struct store *store, uint64_t mark)
{
	return reader_pool_passed(store->readers, mark);
}

void store_wake(struct store *store, enum store_work work)
{
	ASSERT(work < STORE_WORKS);
	lock_enter(&store->lock);
	if (store->workers[work] != NULL)
		worker_thread_wake(store->workers[work]);
	lock_leave(&store->lock);
}

void store_set_worker(struct store *store, enum store_work work, struct worker_thread *worker)
{
	ASSERT(work < STORE_WORKS);
	lock_enter(&store->lock);
	store->workers[work] = worker;
	lock_leave(&store->lock);
}

static char *path_in(const char *folder, const char *name)
{
	const size_t len = strlen(folder) + strlen(name) + 2;
	char *const path = memory_new(len);
	snprintf(path, len, "%s/%s", folder, name);
	return path;
}

/* Never fails a start. When the file cannot be used, as on a disk that takes no writes, the index
 * is in memory and knows only the chunks that are added from here on. */
static void open_chunk_index(struct store *store, const char *path, struct error *err)
{
	struct chunk_index_options options = {
		.files = store->files, .path = path, .log = store->log};
	struct error why = {0};
	store->chunk_index = chunk_index_open(&options, &store->needs_reindex, &why);
	if (store->chunk_index != NULL)
		return;
	log_failure(store->log, LOG_WARNING, NULL, "chunk_index_in_memory", &why);
	options.path = ":memory:";
	store->chunk_index = chunk_index_open(&options, &store->needs_reindex, err);
	store->needs_reindex = false;
}

static struct backend *open_backend(
	const struct store *store, const struct store_params *params, struct error *err)
{
	if (params->memory_packs)
		return backend_memory_new();
	if (params->open_backend != NULL)
		return params->open_backend(params->backend_owner, err);
	if (place_note_check(store->folder, err) != 0)
		return NULL;
	char *const packs = path_in(store->folder, "packs");
	char *const aside = path_in(store->folder, "set-aside");
	struct backend *const backend = backend_folder_open(packs, aside, store->files, err);
	free(aside);
	free(packs);
	return backend;
}
