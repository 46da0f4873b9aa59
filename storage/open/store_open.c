/* Opens the pieces in the order of dependence, and closes them in the reverse order. A failed open
 * closes what is open in the same way, so each stop takes NULL. store_start brings catalog and
 * packs together before anything else may write; background threads start last. */
#include "storage/open/store_open.h"

#include <stdlib.h>

#include "base/memory.h"
#include "storage/buckets/lifecycle_cache.h"
#include "storage/buckets/session_touches.h"
#include "storage/core/damage_book.h"
#include "storage/core/store_core.h"
#include "storage/db/checkpointer.h"
#include "storage/derive/derive_worker.h"
#include "storage/files/file_hash_worker.h"
#include "storage/journal/journal_keeper.h"
#include "storage/objects/scratch.h"
#include "storage/packs/set_aside.h"
#include "storage/run_tables/path_hold.h"
#include "storage/run_tables/replica_table.h"
#include "storage/run_tables/step_sizes.h"
#include "storage/start/catalog_checker.h"
#include "storage/step_jobs/fleet_worker.h"
#include "storage/step_jobs/webhook_worker.h"
#include "storage/upkeep/lifecycle_worker.h"
#include "storage/upkeep/pack_shipper.h"
#include "storage/upkeep/sweeper.h"
#include "storage/xet/made_file.h"
#include "storage/xet/shard_turns.h"

enum { HELPER_THREADS = 4, DAY_MS = 24 * 60 * 60 * 1000, LIFECYCLE_INTERVAL_MS = 60 * 60 * 1000 };

/* The background threads that no other room needs to reach, and the options of the store. */
struct store_threads {
	struct store_options options;
	struct catalog_copy *catalog_copy; /* NULL: the catalog is not a copy */
	struct catalog_checker *catalog_checker;
	struct checkpointer *checkpointer;
	struct journal_keeper *journal_keeper; /* NULL: the store is only read */
	struct pack_shipper *pack_shipper;     /* NULL: packs lie in a folder */
	struct sweeper *sweeper;
	struct lifecycle_worker *lifecycle_worker;
	struct fleet_worker *fleet_worker;
	struct webhook_worker *webhook_worker;
};

static struct store *new_store(const struct store_options *options);
static void fill_defaults(struct store_options *options);
static struct store_params params_of(const struct store_options *options);
static int open_all(struct store *store, struct error *err);
static int store_open_sync_journal(void *owner, struct error *err);
static int open_catalog(struct store *store, struct error *err);
static int fill_caches(struct store *store, struct db *db, struct error *err);
static int pass_damage(const struct store *store, int result, const struct error *err);
static void measure_set_aside(const struct store *store);
static void start_threads(struct store *store);
static void start_workers(struct store *store);
static void stop_threads(const struct store_parts *parts);
static void free_parts(const struct store_parts *parts);

struct store *store_open(const struct store_options *options, struct error *err)
{
	struct store *const store = new_store(options);
	if (open_all(store, err) != 0) {
		store_close(store);
		return NULL;
	}
	measure_set_aside(store);
	start_threads(store);
	return store;
}

void store_close(struct store *store)
{
	if (store == NULL)
		return;
	const struct store_parts parts = *store_parts(store);
	stop_threads(&parts);
	store_end_changes(store);
	step_worker_free(parts.step_worker);
	store_end_helpers(store);
	store_free(store);
	free_parts(&parts);
}

static struct store *new_store(const struct store_options *options)
{
	ASSERT(options->folder != NULL);
	struct store_threads *const threads = memory_new(sizeof(*threads));
	threads->options = *options;
	fill_defaults(&threads->options);
	const struct store_params params = params_of(&threads->options);
	struct store *const store = store_new(&params);
	*store_parts(store) = (struct store_parts){
		.lifecycle_cache = lifecycle_cache_new(threads->options.lifecycle_day_ms),
		.session_touches = session_touches_new(),
		.replicas = replica_table_new(threads->options.clock),
		.path_holds = path_hold_new(threads->options.clock),
		.step_sizes = step_sizes_new(),
		.made_files = made_files_new(),
		.shard_turns = shard_turns_new(),
		.derive = &threads->options.derive,
		.webhooks = &threads->options.webhooks,
		.xet = &threads->options.xet,
		.threads = threads,
	};
	return store;
}

static void fill_defaults(struct store_options *options)
{
	if (options->files == NULL)
		options->files = file_system();
	if (options->clock == NULL)
		options->clock = clock_system();
	if (options->helper_threads == 0)
		options->helper_threads = HELPER_THREADS;
	if (options->lifecycle_day_ms <= 0)
		options->lifecycle_day_ms = DAY_MS;
	if (options->lifecycle_interval_ms <= 0)
		options->lifecycle_interval_ms = LIFECYCLE_INTERVAL_MS;
}

static struct store_params params_of(const struct store_options *options)
{
	return (struct store_params){.folder = options->folder,
		.files = options->files,
		.clock = options->clock,
		.metrics = options->metrics,
		.log = options->log,
		.helper_threads = options->helper_threads,
		.disk_reserve = options->disk_reserve,
		.pack_max_bytes = options->pack_max_bytes,
		.fast_etags = options->fast_etags,
		.memory_packs = options->memory_packs,
		.open_backend = options->open_backend,
		.backend_owner = options->backend_owner};
}

static int open_all(struct store *store, struct error *err)
{
	struct store_threads *const threads = store_parts(store)->threads;
	const struct store_params params = params_of(&threads->options);
	if (file_make_folder(store_files(store), store_folder(store), 0700, err) != 0 ||
		store_open_packs(store, &params, err) != 0 || open_catalog(store, err) != 0 ||
		scratch_recover(store, err) != 0)
		return -1;
	const struct checkpointer_gate gate = {
		.pass = store_open_sync_journal, .owner = store_journal(store)};
	threads->checkpointer = checkpointer_start(store_catalog_path(store), &gate, err);
	return threads->checkpointer == NULL ? -1 : 0;
}

static int store_open_sync_journal(void *owner, struct error *err)
{
	return journal_sync(owner, err);
}

static int open_catalog(struct store *store, struct error *err)
{
	struct store_threads *const threads = store_parts(store)->threads;
	const struct store_start_params params = {.folder = store_folder(store),
		.files = store_files(store),
		.packs = store_packs(store),
		.floor = store_disk_floor(store),
		.log = store_log(store),
		.health = store_health(store),
		.after_damage = threads->options.after_damage,
		.keeps_strays = threads->options.is_quiet,
		.memory_packs = threads->options.memory_packs};
	struct store_start start;
	if (store_start(&params, &start, err) != 0)
		return -1;
	threads->catalog_copy = start.copy;
	const struct store_catalog catalog = {.path = start.catalog_path,
		.acknowledged = start.acknowledged,
		.journal = start.journal,
		.identity = start.store};
	store_set_catalog(store, &catalog);
	if (fill_caches(store, start.db, err) != 0) {
		db_close(start.db);
		return -1;
	}
	store_start_committer(store, start.db);
	return 0;
}

static int fill_caches(struct store *store, struct db *db, struct error *err)
{
	const struct store_parts *const parts = store_parts(store);
	store_fill_chunk_index(store);
	if (pass_damage(store, lifecycle_cache_load(parts->lifecycle_cache, db, err), err) != 0)
		return -1;
	if (pass_damage(store, damage_book_load(store_packs(store), db, err), err) != 0)
		return -1;
	return pass_damage(store, replica_table_load(parts->replicas, db, err), err);
}

/* Lets a start go on when a cache cannot be filled from a damaged table: the cache lacks rows until
 * a start finds the table right again. That is safe. While a table is damaged nothing is deleted,
 * and while leases are missing no steps are removed (step_keep.h). */
static int pass_damage(const struct store *store, int result, const struct error *err)
{
	if (result == 0 || err->kind != ERROR_DAMAGED)
		return result;
	log_failure(store_log(store), LOG_ERROR, NULL, "cache_not_filled", err);
	return 0;
}

/* Sets the metrics of the files that earlier starts have set aside. */
static void measure_set_aside(const struct store *store)
{
	struct set_aside aside;
	struct error err = {0};
	if (set_aside_list(store_folder(store), &aside, &err) != 0) {
		log_failure(store_log(store), LOG_WARNING, NULL, "set_aside", &err);
		return;
	}
	metrics_set(store_metrics(store), METRIC_SET_ASIDE, (int64_t)aside.count);
	metrics_set(store_metrics(store), METRIC_SET_ASIDE_BYTES, (int64_t)aside.bytes);
	set_aside_release(&aside);
}

static void start_threads(struct store *store)
{
	struct store_parts *const parts = store_parts(store);
	struct store_threads *const threads = parts->threads;
	const struct store_options *const options = &threads->options;
	ASSERT(threads->checkpointer != NULL);
	if (store_journal(store) != NULL)
		threads->journal_keeper =
			journal_keeper_start(store_journal(store), store_catalog_path(store),
				store_log(store), store_metrics(store), store_work_notes(store));
	threads->catalog_checker = catalog_checker_start(store);
	if (!options->is_quiet)
		start_workers(store);
}

static void start_workers(struct store *store)
{
	struct store_parts *const parts = store_parts(store);
	struct store_threads *const threads = parts->threads;
	const struct store_options *const options = &threads->options;
	threads->pack_shipper = pack_shipper_start(store, options->pack_open_ms);
	threads->sweeper = sweeper_start(store);
	threads->lifecycle_worker = lifecycle_worker_start(
		store, options->lifecycle_interval_ms, options->lifecycle_day_ms);
	parts->gc = gc_start(store, &options->gc);
	parts->scrub = scrub_start(store, &options->scrub);
	parts->step_worker = step_worker_start(store, &options->steps);
	threads->fleet_worker = fleet_worker_start(store);
	parts->derive_worker = derive_worker_start(store, &options->derive);
	threads->webhook_worker = webhook_worker_start(store);
	parts->file_hash_worker = file_hash_worker_start(store);
}

static void stop_threads(const struct store_parts *parts)
{
	const struct store_threads *const threads = parts->threads;
	made_files_quiesce(parts->made_files);
	shard_turns_drain(parts->shard_turns);
	file_hash_worker_stop(parts->file_hash_worker);
	webhook_worker_stop(threads->webhook_worker);
	fleet_worker_stop(threads->fleet_worker);
	derive_worker_stop(parts->derive_worker);
	step_worker_stop(parts->step_worker);
	scrub_stop(parts->scrub);
	gc_stop(parts->gc);
	lifecycle_worker_stop(threads->lifecycle_worker);
	sweeper_stop(threads->sweeper);
	pack_shipper_stop(threads->pack_shipper);
	catalog_checker_stop(threads->catalog_checker);
	journal_keeper_stop(threads->journal_keeper);
	checkpointer_stop(threads->checkpointer);
}

static void free_parts(const struct store_parts *parts)
{
	lifecycle_cache_free(parts->lifecycle_cache);
	session_touches_free(parts->session_touches);
	replica_table_free(parts->replicas);
	path_hold_free(parts->path_holds);
	step_sizes_free(parts->step_sizes);
	made_files_free(parts->made_files);
	shard_turns_free(parts->shard_turns);
	catalog_copy_free(parts->threads->catalog_copy);
	free(parts->threads);
}
