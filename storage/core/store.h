/* What every room of storage works with: the catalog's connections, the committer, the packs,
 * helpers, clock, log and settings of one data folder. storage/open makes a store out of it
 * (store_open.h) and puts what the rooms above keep with it into its parts. Any thread.
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
#include "storage/core/pack_touches.h"
#include "storage/packs/chunk_index.h"
#include "storage/packs/disk_floor.h"

struct store;

/* What rooms above keep with the store. storage/open sets all of it before anybody else has the
 * store, and frees it. */
struct store_parts {
	struct lifecycle_cache *lifecycle_cache;
	struct replica_table *replicas;
	struct path_hold *path_holds;
	struct xet_makes *xet_makes;
	struct shard_turns *shard_turns;
	struct gc *gc;
	struct step_worker *step_worker;
	struct derive_worker *derive_worker;
	struct file_hash_worker *file_hash_worker;
	const struct derive_options *derive;
	const struct webhook_options *webhooks;
	const struct xet_options *xet;
	int64_t scratch_left; /* the highest version that an earlier process held (scratch.h) */
	struct store_threads *threads; /* storage/open's alone */
};
struct store_parts *store_parts(const struct store *store);

struct store_health *store_health(const struct store *store);
/* Whether content of so many bytes finds room beside what the disk keeps free: 0, no_space or
 * read_only. Nothing is set aside for it. */
int store_check_room(const struct store *store, uint64_t bytes, struct error *err);
const struct disk_floor *store_disk_floor(const struct store *store);
/* Sets the metrics of the data folder's disk; where it cannot be asked they stay. */
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
struct store_opened store_opened(const struct store *store); /* when */
uint64_t store_life(const struct store *store);              /* the number of this start */
bool store_fast_etags(const struct store *store);
struct log *store_log(const struct store *store);         /* may be NULL */
struct metrics *store_metrics(const struct store *store); /* may be NULL */

struct committer *store_committer(const struct store *store);
struct pack_store *store_packs(const struct store *store);
struct chunk_index *store_chunk_index(const struct store *store);
struct pack_touches *store_pack_touches(const struct store *store);
struct helpers *store_helpers(const struct store *store);
/* Publishes read their anchors on a few lanes, chosen by the run: one run's stay in order. */
struct helper_lane *store_publish_lane(struct store *store, uint64_t hash);
struct step_watch *store_step_watch(const struct store *store);
struct change_feed *store_change_feed(const struct store *store);

/* Whether work behind the requests may change anything at present (store_health.h), and whether it
 * may delete. */
bool store_takes_work(const struct store *store);
bool store_may_delete(const struct store *store);

/* A reading connection of the catalog, for the time of a few statements; always give it back. NULL
 * with the error set. */
struct db *store_reader_take(struct store *store, struct error *err);
void store_reader_give(struct store *store, struct db *reader);
/* The same in a snapshot: all its statements see one state of the catalog. */
struct db *store_snapshot_take(struct store *store, struct error *err);
void store_snapshot_give(struct store *store, struct db *reader);
/* For gc: whether all connections that were out at `mark` have been given back. What a snapshot
 * showed is held by then, or of no interest. */
uint64_t store_readers_mark(struct store *store);
bool store_readers_passed(struct store *store, uint64_t mark);

/* Work that changes leave to threads of rooms above. */
enum store_work {
	STORE_STEP_WORK,      /* there may be new jobs of the step worker */
	STORE_FILE_HASH_WORK, /* there may be a current version without a hash */
	STORE_WORKS
};
/* The thread that is to do such work begins a round. Costs next to nothing; from any thread, the
 * committer's too. */
void store_wake(struct store *store, enum store_work work);
/* Which thread that is; NULL from before it is released. */
struct worker_thread;
void store_set_worker(struct store *store, enum store_work work, struct worker_thread *worker);

#endif
