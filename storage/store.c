/* Opens in the order of dependence and closes in the reverse. store_start brings catalog and packs together before anything else may write. */
#include "storage/store.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/lock.h"
#include "base/memory.h"
#include "storage/catalog_checker.h"
#include "storage/change_feed.h"
#include "storage/checkpointer.h"
#include "storage/committer.h"
#include "storage/damage_book.h"
#include "storage/derive_worker.h"
#include "storage/file_hash_worker.h"
#include "storage/gate.h"
#include "storage/lifecycle_cache.h"
#include "storage/lifecycle_worker.h"
#include "storage/fleet_worker.h"
#include "storage/path_hold.h"
#include "storage/replica_table.h"
#include "storage/scratch.h"
#include "storage/set_aside.h"
#include "storage/step_watch.h"
#include "storage/step_worker.h"
#include "storage/store_internal.h"
#include "storage/store_start.h"
#include "storage/sweeper.h"
#include "storage/webhook_worker.h"
#include "storage/xet_make.h"

enum { PUBLISH_LANES = 4, READERS_KEPT = 32, HELPER_THREADS = 4, DAY_MS = 24 * 60 * 60 * 1000, LIFECYCLE_INTERVAL_MS = 60 * 60 * 1000,
	LARGE_SHARDS_AT_A_TIME = 4 };

struct reader_out { /* a connection that somebody has */
	struct db *db;
	uint64_t taken; /* the how manieth it was */
};

struct store {
	char *folder;
	struct disk_floor floor; /* of that folder's disk */
	char *catalog_path;
	struct catalog_copy *catalog_copy; /* NULL: it is none */
	struct store_health *health;
	struct acknowledged *acknowledged; /* the committer's to write */
	struct store_identity identity;
	int64_t scratch_left;
	struct catalog_checker *catalog_checker;
	const struct file_ops *files;
	const struct clock_source *clock;
	struct metrics *metrics;
	struct log *log;
	bool fast_etags;
	bool reindex; /* the chunk index is new or was damaged */
	struct helpers *helpers;
	struct chunk_index *chunk_index;
	struct pack_store *packs;
	struct committer *committer;
	struct damage_book *damage_book;
	struct checkpointer *checkpointer;
	struct sweeper *sweeper;
	struct lifecycle_cache *lifecycle_cache;
	struct lifecycle_worker *lifecycle_worker;
	struct pack_touches *touches;
	struct gc *gc;
	struct replica_table *replicas;
	struct path_hold *path_holds;
	struct fleet_worker *fleet_worker;
	struct store_opened opened;
	struct step_worker *step_worker;
	struct derive_options derive;
	struct derive_worker *derive_worker;
	struct file_hash_worker *file_hash_worker;
	struct xet_makes *xet_makes;
	struct webhook_options webhooks;
	struct xet_options xet;
	struct gate shard_gate;
	_Atomic unsigned shards; /* under way */
	struct webhook_worker *webhook_worker;
	struct step_watch *watch;
	struct change_feed *change_feed;
	struct helper_lane publish_lanes[PUBLISH_LANES];
	struct lock lock;                 /* guards what follows */
	struct db *readers[READERS_KEPT]; /* idle ones */
	size_t reader_count;
	struct reader_out *readers_out;
	size_t readers_out_count;
	size_t readers_out_capacity;
	uint64_t readers_taken;
};

static char *path_in(const char *const folder, const char *const name)
{
	const size_t len = strlen(folder) + strlen(name) + 2;
	char *const path = memory_new(len);
	snprintf(path, len, "%s/%s", folder, name);
	return path;
}

/* No start fails for what it lacks: where the file cannot be had, as on a disk that takes no writes, the index knows what comes from here on. */
static void open_chunk_index(struct store *store, const char *path, struct error *err)
{
	struct chunk_index_options options = {.files = store->files, .path = path, .log = store->log};
	struct error why = {0};
	store->chunk_index = chunk_index_open(&options, &store->reindex, &why);
	if (store->chunk_index != NULL)
		return;
	log_failure(store->log, LOG_WARNING, NULL, "chunk_index_in_memory", &why);
	options.path = ":memory:";
	store->chunk_index = chunk_index_open(&options, &store->reindex, err);
	store->reindex = false;
}

static int open_packs(struct store *const store, const struct store_options *const options, struct error *const err)
{
	char *const chunks_path = path_in(options->folder, "chunks.db");
	char *const packs_path = path_in(options->folder, "packs");
	char *const aside_path = path_in(options->folder, "set-aside");
	struct backend *backend = NULL;
	open_chunk_index(store, chunks_path, err);
	if (store->chunk_index != NULL)
		backend = options->memory_packs ? backend_memory_new()
			: backend_folder_open(packs_path, aside_path, store->files, err);
	free(aside_path);
	free(packs_path);
	free(chunks_path);
	if (backend == NULL)
		return -1;
	const struct pack_store_options pack_options = {
		.backend = backend,
		.chunk_index = store->chunk_index,
		.helpers = store->helpers,
		.metrics = store->metrics,
		.log = store->log,
		.floor = &store->floor,
		.pack_max_bytes = options->pack_max_bytes,
		.clock = store->clock,
	};
	store->packs = pack_store_open(&pack_options, err);
	return store->packs == NULL ? -1 : 0;
}

/* What could not be written down this time is made anew by the next start. */
static void fill_chunk_index(struct store *store)
{
	struct error err = {0};
	if (store->reindex && pack_store_reindex(store->packs, &err) != 0)
		chunk_index_give_up(store->chunk_index, &err);
}

/* What of a cache stands in a damaged table is not known: its rules and leases are missing until a start
 * finds the table right again. They keep nobody from the rest; as long as a table is damaged nothing is
 * deleted, and as long as leases are missing no steps go (step_keep.h). */
static int pass_damage(const struct store *store, int result, const struct error *err)
{
	if (result == 0 || err->kind != ERROR_DAMAGED)
		return result;
	log_failure(store->log, LOG_ERROR, NULL, "cache_not_filled", err);
	return 0;
}

static int fill_caches(struct store *store, struct db *db, struct error *err)
{
	fill_chunk_index(store);
	if (pass_damage(store, lifecycle_cache_load(store->lifecycle_cache, db, err), err) != 0)
		return -1;
	if (pass_damage(store, damage_book_load(store->packs, db, err), err) != 0)
		return -1;
	return pass_damage(store, replica_table_load(store->replicas, db, err), err);
}

static void start_committer(struct store *store, const struct store_start *start)
{
	const struct committer_options options = {.db = start->db, .packs = store->packs, .metrics = store->metrics,
		.health = store->health, .acknowledged = start->acknowledged, .store = start->store};
	db_set_companion(start->db, DB_PACK_TOUCHES, store->touches);
	db_set_companion(start->db, DB_CHANGE_FEED, store->change_feed);
	store->committer = committer_start(&options);
}

static int open_catalog(struct store *store, const struct store_options *options, struct error *err)
{
	const struct store_start_params params = {.folder = store->folder, .files = store->files, .packs = store->packs,
		.floor = &store->floor, .log = store->log, .health = store->health, .after_damage = options->after_damage,
		.memory_packs = options->memory_packs};
	struct store_start start;
	if (store_start(&params, &start, err) != 0)
		return -1;
	store->catalog_path = start.catalog_path;
	store->catalog_copy = start.copy;
	store->acknowledged = start.acknowledged;
	store->identity = start.store;
	if (fill_caches(store, start.db, err) != 0) {
		db_close(start.db);
		return -1;
	}
	start_committer(store, &start);
	store->damage_book = damage_book_open(store);
	return 0;
}

/* What earlier starts put aside is shown for as long as it is there. */
static void tell_set_aside(const struct store *store)
{
	struct set_aside aside;
	struct error err = {0};
	if (set_aside_list(store->folder, &aside, &err) != 0) {
		log_failure(store->log, LOG_WARNING, NULL, "set_aside", &err);
		return;
	}
	metrics_set(store->metrics, METRIC_SET_ASIDE, (int64_t)aside.count);
	metrics_set(store->metrics, METRIC_SET_ASIDE_BYTES, (int64_t)aside.bytes);
	set_aside_release(&aside);
}

struct store *store_open(const struct store_options *const options, struct error *const err)
{
	struct store *const store = memory_new(sizeof(*store));
	lock_init(&store->lock, LOCK_READERS);
	gate_init(&store->shard_gate, LARGE_SHARDS_AT_A_TIME);
	store->folder = memory_copy_text(options->folder);
	store->files = options->files != NULL ? options->files : file_system();
	store->floor = (struct disk_floor){.files = store->files, .folder = store->folder, .bytes = options->disk_reserve};
	store->health = store_health_new(options->log, options->metrics);
	store->floor.health = store->health;
	store->touches = pack_touches_new();
	store->clock = options->clock != NULL ? options->clock : clock_system();
	store->opened = (struct store_opened){store->clock->wall_ms(store->clock), store->clock->monotonic_ms(store->clock)};
	store->replicas = replica_table_new(store->clock);
	store->path_holds = path_hold_new(store->clock);
	store->xet_makes = xet_makes_new();
	store->metrics = options->metrics;
	store->log = options->log;
	store->fast_etags = options->fast_etags;
	store->derive = options->derive;
	store->webhooks = options->webhooks;
	store->xet = options->xet;
	const int64_t day_ms = options->lifecycle_day_ms > 0 ? options->lifecycle_day_ms : DAY_MS;
	store->lifecycle_cache = lifecycle_cache_new(day_ms);
	store->watch = step_watch_start(store->clock);
	store->change_feed = change_feed_new(&(struct change_feed_options){.clock = store->clock, .watch = store->watch});
	if (file_make_folder(store->files, options->folder, 0700, err) == 0) {
		store->helpers = helpers_start(options->helper_threads != 0 ? options->helper_threads : HELPER_THREADS);
		if (open_packs(store, options, err) == 0 && open_catalog(store, options, err) == 0 && scratch_recover(store, err) == 0 &&
		    (store->checkpointer = checkpointer_start(store->catalog_path, err)) != NULL) {
			tell_set_aside(store);
			store->catalog_checker = catalog_checker_start(store);
			store->sweeper = sweeper_start(store);
			store->lifecycle_worker = lifecycle_worker_start(store,
				options->lifecycle_interval_ms > 0 ? options->lifecycle_interval_ms : LIFECYCLE_INTERVAL_MS, day_ms);
			store->gc = gc_start(store, &options->gc);
			store->step_worker = step_worker_start(store, &options->steps);
			store->fleet_worker = fleet_worker_start(store);
			store->derive_worker = derive_worker_start(store, &options->derive);
			store->webhook_worker = webhook_worker_start(store);
			store->file_hash_worker = file_hash_worker_start(store);
			return store;
		}
	}
	store_close(store);
	return NULL;
}

/* Their exchanges may be gone; then they were given up, and end at their next slice or change. */
static void wait_for_shards(struct store *const store)
{
	gate_close(&store->shard_gate);
	while (atomic_load(&store->shards) > 0)
		nanosleep(&(struct timespec){.tv_nsec = 2 * 1000 * 1000}, NULL);
}

void store_close(struct store *const store)
{
	if (store == NULL)
		return;
	xet_makes_quiesce(store->xet_makes);
	wait_for_shards(store);
	file_hash_worker_stop(store->file_hash_worker);
	webhook_worker_stop(store->webhook_worker);
	fleet_worker_stop(store->fleet_worker);
	derive_worker_stop(store->derive_worker);
	step_worker_stop(store->step_worker);
	gc_stop(store->gc);
	lifecycle_worker_stop(store->lifecycle_worker);
	sweeper_stop(store->sweeper);
	catalog_checker_stop(store->catalog_checker);
	checkpointer_stop(store->checkpointer);
	for (size_t i = 0; i < store->reader_count; i++)
		db_close(store->readers[i]);
	damage_book_close(store->damage_book);
	committer_stop(store->committer); /* the last connection: empties the write-ahead log */
	acknowledged_close(store->acknowledged);
	step_worker_free(store->step_worker);
	helpers_stop(store->helpers);     /* the last commits gave them packs to index */
	damage_book_free(store->damage_book);
	step_watch_stop(store->watch);
	change_feed_free(store->change_feed);
	if (store->packs != NULL)
		pack_store_close(store->packs);
	if (store->chunk_index != NULL)
		chunk_index_close(store->chunk_index);
	lifecycle_cache_free(store->lifecycle_cache);
	replica_table_free(store->replicas);
	path_hold_free(store->path_holds);
	xet_makes_free(store->xet_makes);
	pack_touches_free(store->touches);
	ASSERT(store->readers_out_count == 0);
	free(store->readers_out);
	gate_release(&store->shard_gate);
	lock_release(&store->lock);
	store_health_free(store->health);
	catalog_copy_free(store->catalog_copy);
	free(store->catalog_path);
	free(store->folder);
	free(store);
}

struct store_health *store_health(struct store *store)
{
	return store->health;
}

void store_set_scratch_left(struct store *store, int64_t version)
{
	store->scratch_left = version;
}

int64_t store_scratch_left(const struct store *store)
{
	return store->scratch_left;
}

bool store_takes_work(struct store *store)
{
	struct error ignored;
	return store_health_may_write(store->health, &ignored) == 0;
}

bool store_may_delete(struct store *store)
{
	return store_health_may_delete(store->health);
}

uint64_t store_life(const struct store *store)
{
	return store->identity.life;
}

struct committer *store_committer(struct store *const store)
{
	return store->committer;
}

struct pack_store *store_packs(struct store *const store)
{
	return store->packs;
}

struct helpers *store_helpers(struct store *const store)
{
	return store->helpers;
}

struct gc *store_gc(struct store *const store)
{
	return store->gc;
}

struct derive_worker *store_derive_worker(struct store *const store)
{
	return store->derive_worker;
}

struct xet_makes *store_xet_makes(struct store *const store)
{
	return store->xet_makes;
}

struct file_hash_worker *store_file_hash_worker(struct store *const store)
{
	return store->file_hash_worker;
}

const struct webhook_options *store_webhook_options(const struct store *const store)
{
	return &store->webhooks;
}

const struct xet_options *store_xet_options(const struct store *const store)
{
	return &store->xet;
}

struct gate *store_shard_gate(struct store *const store)
{
	return &store->shard_gate;
}

void store_shard_began(struct store *const store)
{
	atomic_fetch_add(&store->shards, 1);
}

void store_shard_ended(struct store *const store)
{
	atomic_fetch_sub(&store->shards, 1);
}

const struct derive_options *store_derive_options(const struct store *const store)
{
	return &store->derive;
}

struct step_worker *store_step_worker(struct store *const store)
{
	return store->step_worker;
}

struct replica_table *store_replicas(struct store *const store)
{
	return store->replicas;
}

struct path_hold *store_path_holds(struct store *const store)
{
	return store->path_holds;
}

struct store_opened store_opened(const struct store *const store)
{
	return store->opened;
}

struct log *store_log(const struct store *const store)
{
	return store->log;
}

struct chunk_index *store_chunk_index(struct store *const store)
{
	return store->chunk_index;
}

struct pack_touches *store_pack_touches(struct store *const store)
{
	return store->touches;
}

int store_check_room(const struct store *const store, const uint64_t bytes, struct error *const err)
{
	return disk_floor_check_room(&store->floor, bytes, err);
}

bool store_tells_room(const struct error *const err)
{
	return disk_floor_refuses(err);
}

void store_measure_disk(const struct store *const store)
{
	struct file_space space;
	if (store->files->space(store->files, store->folder, &space) != 0)
		return;
	metrics_set(store->metrics, METRIC_DISK_BYTES, (int64_t)space.all);
	metrics_set(store->metrics, METRIC_DISK_FREE_BYTES, (int64_t)space.free);
}

const struct disk_floor *store_disk_floor(const struct store *const store)
{
	return &store->floor;
}

const char *store_folder(const struct store *const store)
{
	return store->folder;
}

const struct file_ops *store_files(const struct store *const store)
{
	return store->files;
}

const char *store_catalog_path(const struct store *const store)
{
	return store->catalog_path;
}

struct step_watch *store_step_watch(struct store *const store)
{
	return store->watch;
}

struct change_feed *store_change_feed(struct store *const store)
{
	return store->change_feed;
}

const struct clock_source *store_clock(const struct store *const store)
{
	return store->clock;
}

bool store_fast_etags(const struct store *const store)
{
	return store->fast_etags;
}

struct lifecycle_cache *store_lifecycle_cache(struct store *const store)
{
	return store->lifecycle_cache;
}

struct metrics *store_metrics(const struct store *const store)
{
	return store->metrics;
}

struct helper_lane *store_publish_lane(struct store *const store, const uint64_t hash)
{
	return &store->publish_lanes[hash % PUBLISH_LANES];
}

static void note_taken(struct store *const store, struct db *const reader, const uint64_t taken)
{
	lock_assert_held(&store->lock);
	if (store->readers_out_count == store->readers_out_capacity) {
		store->readers_out_capacity = store->readers_out_capacity == 0 ? 16 : 2 * store->readers_out_capacity;
		store->readers_out = memory_grow(store->readers_out, store->readers_out_capacity, sizeof(*store->readers_out));
	}
	store->readers_out[store->readers_out_count++] = (struct reader_out){reader, taken};
}

static void note_given(struct store *const store, const struct db *const reader)
{
	lock_assert_held(&store->lock);
	size_t at = 0;
	while (at < store->readers_out_count && store->readers_out[at].db != reader)
		at++;
	ASSERT(at < store->readers_out_count);
	store->readers_out[at] = store->readers_out[--store->readers_out_count];
}

struct db *store_reader_take(struct store *const store, struct error *const err)
{
	lock_enter(&store->lock);
	struct db *reader = store->reader_count == 0 ? NULL : store->readers[--store->reader_count];
	const uint64_t taken = store->readers_taken++;
	if (reader != NULL)
		note_taken(store, reader, taken);
	lock_leave(&store->lock);
	if (reader != NULL)
		return reader;
	reader = db_open(store->catalog_path, DB_READ, err);
	lock_enter(&store->lock);
	if (reader != NULL)
		note_taken(store, reader, store->readers_taken++);
	lock_leave(&store->lock);
	return reader;
}

void store_reader_give(struct store *const store, struct db *const reader)
{
	if (reader == NULL)
		return;
	ASSERT(!db_in_transaction(reader));
	lock_enter(&store->lock);
	note_given(store, reader);
	const bool kept = store->reader_count < READERS_KEPT;
	if (kept)
		store->readers[store->reader_count++] = reader;
	lock_leave(&store->lock);
	if (!kept)
		db_close(reader);
}

struct db *store_snapshot_take(struct store *const store, struct error *const err)
{
	struct db *const reader = store_reader_take(store, err);
	if (reader == NULL || db_snapshot_begin(reader, err) == 0)
		return reader;
	store_reader_give(store, reader);
	return NULL;
}

void store_snapshot_give(struct store *const store, struct db *const reader)
{
	if (reader == NULL)
		return;
	db_snapshot_end(reader);
	store_reader_give(store, reader);
}

uint64_t store_readers_mark(struct store *const store)
{
	lock_enter(&store->lock);
	const uint64_t mark = store->readers_taken;
	lock_leave(&store->lock);
	return mark;
}

bool store_readers_passed(struct store *const store, const uint64_t mark)
{
	bool passed = true;
	lock_enter(&store->lock);
	for (size_t i = 0; i < store->readers_out_count && passed; i++)
		passed = store->readers_out[i].taken >= mark;
	lock_leave(&store->lock);
	return passed;
}
