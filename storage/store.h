/* The whole store of one data folder: catalog, packs, chunk index, committer, checkpointer, sweeper, helpers, step watch. Opening recovers;
 * only the holder of DIR/lock (server/data_folder) may open one. Any thread.
 *
 *   DIR/catalog.db   DIR/chunks.db   DIR/packs/xx/<32 hex>.pack, .index   DIR/scratch/
 *   DIR/acknowledged   DIR/set-aside/   */
#ifndef STORAGE_STORE_H
#define STORAGE_STORE_H

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/metrics.h"
#include "storage/gc.h"

struct store;

/* What a start does that finds acknowledged changes lost, or the wrong catalog. */
enum after_damage {
	AFTER_DAMAGE_REFUSE,    /* it says what is wrong, and changes nothing */
	AFTER_DAMAGE_READ_ONLY, /* what is there is served, from a copy of the catalog */
	AFTER_DAMAGE_SERVE      /* it goes on with what is there, from now on the truth */
};

struct store_options {
	const char *folder;
	const struct file_ops *files;        /* NULL: the real ones */
	const struct clock_source *clock;    /* NULL: the system's */
	struct metrics *metrics;             /* borrowed, may be NULL */
	struct log *log;                     /* borrowed, may be NULL */
	unsigned helper_threads;             /* 0: 4 */
	uint64_t disk_reserve;               /* bytes of the disk that content leaves free (storage/disk_floor.h); 0: none */
	uint64_t pack_max_bytes;             /* 0: 64 MiB */
	bool fast_etags;                     /* policy of buckets that have none of their own (bucket.h) */
	bool memory_packs;                   /* tests: packs in memory */
	enum after_damage after_damage;
	int64_t lifecycle_day_ms;            /* what counts as a day in lifecycle rules; 0: 24 hours */
	int64_t lifecycle_interval_ms;       /* between two walks of the lifecycle worker; 0: an hour */
	struct gc_options gc;                /* zeros: gc works only when asked to */
	struct derive_options {              /* full checkpoints stored as deltas (storage/derive_worker.h) */
		bool enabled;                /* false: none is noted, none is looked at */
		uint64_t bytes_per_second;   /* of weights read; 0: as fast as it goes */
		uint64_t min_bytes;          /* smaller objects stay as they are */
		int64_t interval_ms;         /* between two looks at what waits; 0: a second */
	} derive;
	struct step_worker_options {         /* background work of runs (storage/step_worker.h) */
		bool enabled;                /* false: it does only what it is asked for */
		uint64_t bytes_per_second;   /* of weights decoded; 0: as fast as it goes */
		unsigned threads;            /* that decode; 0: 1 */
		int64_t aside_ms;            /* until what failed is tried again; 0: a minute */
	} steps;
	struct webhook_options {             /* storage/webhook.h */
		const char *const *hosts;    /* patterns of webhook_url.h; borrowed */
		size_t host_count;           /* 0: no webhooks */
		uint8_t key[32];             /* secrets of runs are worked out from it */
	} webhooks;
	struct xet_options {                 /* clients that speak Xet */
		int64_t upload_promise_ms;   /* how long a xorb that a client has sent stays at least: it may be named without being asked for */
		int64_t answer_promise_ms;   /* the same of a xorb that an answer about a chunk has named */
		uint64_t made_max_bytes;     /* of derived objects that are kept as records for a while */
		uint8_t key[32];             /* what answers hide chunk ids with is worked out from it */
	} xet;
};
/* A catalog that is not the one of these packs, or has lost what was acknowledged, is refused (damaged) before anything moves, unless
 * after_damage says otherwise. On a file system that takes no writes the store is only read. */
struct store *store_open(const struct store_options *options, struct error *err);
/* Waiting exchanges must have been woken (step_watch_wake_all) and finished first. */
void store_close(struct store *store);

struct store_health *store_health(struct store *store);
/* Whether content of so many bytes finds room beside what the disk keeps free: 0, no_space or read_only. Nothing is set aside for it. */
int store_check_room(const struct store *store, uint64_t bytes, struct error *err);
/* Whether a refusal is one of content that finds no room: a sentence for whoever may know how full
 * the disk is; it names no file. */
bool store_tells_room(const struct error *err);
struct committer *store_committer(struct store *store);
struct pack_store *store_packs(struct store *store);
struct helpers *store_helpers(struct store *store);
struct step_watch *store_step_watch(struct store *store);
struct change_feed *store_change_feed(struct store *store);
struct gc *store_gc(struct store *store);
struct step_worker *store_step_worker(struct store *store);
struct derive_worker *store_derive_worker(struct store *store);
struct file_hash_worker *store_file_hash_worker(struct store *store);
struct xet_makes *store_xet_makes(struct store *store);
const struct clock_source *store_clock(const struct store *store);
bool store_fast_etags(const struct store *store);
struct lifecycle_cache *store_lifecycle_cache(struct store *store);
struct log *store_log(const struct store *store); /* may be NULL */

/* A reading connection of the catalog, for the time of a few statements; always give it back. NULL with the error set. */
struct db *store_reader_take(struct store *store, struct error *err);
void store_reader_give(struct store *store, struct db *reader);
/* The same in a snapshot: all its statements see one state of the catalog. */
struct db *store_snapshot_take(struct store *store, struct error *err);
void store_snapshot_give(struct store *store, struct db *reader);
/* For gc: whether all connections that were out at `mark` have been given back. What a snapshot showed is held by then, or of no interest. */
uint64_t store_readers_mark(struct store *store);
bool store_readers_passed(struct store *store, uint64_t mark);

/* Sets the metrics of the data folder's disk; where it cannot be asked they stay. */
void store_measure_disk(const struct store *store);

#endif
