/* The store of one data folder, with the pieces that every room of storage uses: connections of the
 * catalog, committer, packs, helpers, clock, log and settings. storage/open opens it (store_open.h)
 * and puts the objects of the rooms above into its parts. Any thread.
 *
 *   DIR/catalog.db   DIR/chunks.db   DIR/packs/xx/<32 hex>.pack, .index   DIR/scratch/
 *   DIR/acknowledged   DIR/set-aside/ */
#ifndef STORAGE_CORE_STORE_H
#define STORAGE_CORE_STORE_H

#include "base/clock.h"
#include "base/file.h"
#include "base/metrics.h"
#include "base/thread/helpers.h"
#include "base/thread/log.h"
#include "base/thread/work_notes.h"
#include "storage/core/pack_touches.h"
#include "storage/packs/chunk_index.h"
#include "storage/packs/disk_floor.h"

struct backup_holds;
struct journal;
struct store;

/* Objects of the rooms above. storage/open sets all of them before any other code has the store,
 * and frees them. */
struct store_parts {
	struct lifecycle_cache *lifecycle_cache;
	struct session_touches *session_touches;
	struct replica_table *replicas;
	struct path_hold *path_holds;
	struct step_sizes *step_sizes;
	struct made_files *made_files;
	struct shard_turns *shard_turns;
	struct gc *gc;
	struct scrub *scrub;
	struct step_worker *step_worker;
	struct derive_worker *derive_worker;
	struct file_hash_worker *file_hash_worker;
	const struct derive_options *derive;
	const struct webhook_options *webhooks;
	const struct xet_options *xet;
	_Atomic unsigned savings_waiting; /* countings on their way (step_saving.h) */
	int64_t scratch_left; /* the highest version that an earlier process held (scratch.h) */
	struct store_threads *threads; /* only storage/open uses it */
};
struct store_parts *store_parts(const struct store *store);

struct store_health *store_health(const struct store *store);
/* Whether content of this size fits on the disk without the space that must stay free: 0, no_space
 * or read_only. Reserves nothing. */
int store_check_room(const struct store *store, uint64_t bytes, struct error *err);
/* As pack_damage_mark (storage/packs/pack_damage.h). */
uint64_t store_damage_mark(const struct store *store);
const struct disk_floor *store_disk_floor(const struct store *store);
/* Sets the metrics of the data folder's disk; they stay when the disk cannot be asked. */
void store_measure_disk(const struct store *store);
const char *store_folder(const struct store *store);
const struct file_ops *store_files(const struct store *store);
const char *store_catalog_path(const struct store *store);
const struct clock_source *store_clock(const struct store *store);
int64_t store_now_ms(const struct store *store); /* wall time of that clock */
struct store_opened {
	int64_t wall_ms;
	int64_t monotonic_ms;
};
struct store_opened store_opened(const struct store *store); /* when store_new made it */
uint64_t store_life(const struct store *store);
bool store_fast_etags(const struct store *store);
struct log *store_log(const struct store *store);         /* may be NULL */
struct metrics *store_metrics(const struct store *store); /* may be NULL */
struct work_notes *store_work_notes(const struct store *store);

/* NULL in a store that is only read. */
struct journal *store_journal(const struct store *store);
struct committer *store_committer(const struct store *store);
struct pack_store *store_packs(const struct store *store);
struct chunk_index *store_chunk_index(const struct store *store);
struct backup_holds *store_backup_holds(const struct store *store);
struct pack_touches *store_pack_touches(const struct store *store);
struct helpers *store_helpers(const struct store *store);
/* Publishes read their anchors on a few lanes. The hash of a run chooses its lane, so that the
 * publishes of one run stay in order. */
struct helper_lane *store_publish_lane(struct store *store, uint64_t hash);
struct step_watch *store_step_watch(const struct store *store);
struct change_feed *store_change_feed(const struct store *store);
struct run_feed *store_run_feed(const struct store *store);

/* Whether background work may change anything now (store_health.h), and whether it may delete. */
bool store_takes_work(const struct store *store);
bool store_may_delete(const struct store *store);

/* Lends a reading connection of the catalog for a few statements; always give it back. NULL with
 * the error set on failure. `reader` may be NULL. */
struct db *store_reader_take(struct store *store, struct error *err);
void store_reader_give(struct store *store, struct db *reader);
/* The same in a snapshot: all its statements see one state of the catalog. */
struct db *store_snapshot_take(struct store *store, struct error *err);
void store_snapshot_give(struct store *store, struct db *reader);
/* For gc: takes a mark, and tells whether all connections that were lent at that time have been
 * given back. By then the packs that their snapshots showed are held, or not needed. */
uint64_t store_readers_mark(struct store *store);
bool store_readers_passed(struct store *store, uint64_t mark);

/* Work that changes leave to worker threads of rooms above. */
enum store_work {
	STORE_STEP_WORK,      /* there may be new jobs for the step worker */
	STORE_FILE_HASH_WORK, /* there may be a current version without a hash */
	STORE_WORKS
};
/* Wakes the worker thread that does such work. Cheap; any thread, also the committer. */
void store_wake(struct store *store, enum store_work work);
/* Sets that thread. Set NULL before the thread is released. */
struct worker_thread;
void store_set_worker(struct store *store, enum store_work work, struct worker_thread *worker);

#endif
