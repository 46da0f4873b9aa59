/* Opens and closes the whole store of one data folder: makes its pieces, brings catalog and packs
 * together, and starts the background threads. Only the holder of DIR/lock (server/data_folder) may
 * open it. One thread. */
#ifndef STORAGE_OPEN_STORE_OPEN_H
#define STORAGE_OPEN_STORE_OPEN_H

#include "storage/core/store.h"
#include "storage/runs/webhook.h"
#include "storage/scrub/scrub.h"
#include "storage/start/store_start.h"
#include "storage/step_jobs/step_worker.h"
#include "storage/upkeep/gc.h"
#include "storage/versions/derive_waiting.h"
#include "storage/xet/xet_options.h"

struct store_options {
	const char *folder;
	const struct file_ops *files;     /* NULL: the real ones */
	const struct clock_source *clock; /* NULL: the system's */
	struct metrics *metrics;          /* borrowed, may be NULL */
	struct log *log;                  /* borrowed, may be NULL */
	unsigned helper_threads;          /* 0: 4 */
	/* bytes that content leaves free on the disk (disk_floor.h); 0: none */
	uint64_t disk_reserve;
	uint64_t pack_max_bytes; /* 0: 64 MiB */
	/* the ETag policy of buckets that have none of their own (bucket.h) */
	bool fast_etags;
	bool memory_packs; /* tests: packs in memory */
	/* Opens the place of packs (storage/packs/backend.h), called once by store_open; NULL: the
	 * folder DIR/packs. */
	struct backend *(*open_backend)(void *owner, struct error *err);
	void *backend_owner;
	/* how long a shared pack stays open in a far place; 0: 10 s */
	int64_t pack_open_ms;
	/* Nothing is done by itself but what keeps changes durable and checks the catalog: no
	 * gc, no sweeper, no work on steps. For a repair. */
	bool is_quiet;
	enum after_damage after_damage;
	/* the length of a day in lifecycle rules; 0: 24 hours */
	int64_t lifecycle_day_ms;
	/* between two walks of the lifecycle worker; 0: an hour */
	int64_t lifecycle_interval_ms;
	struct gc_options gc;       /* zeros: gc works only when it is asked to */
	struct scrub_options scrub; /* the same of scrub */
	struct derive_options derive;
	struct step_worker_options steps;
	struct webhook_options webhooks;
	struct xet_options xet;
};
/* A catalog that does not belong to the packs, or has lost acknowledged changes, is refused
 * (damaged) before anything moves, unless after_damage says otherwise. On a file system that takes
 * no writes the store is only read. */
struct store *store_open(const struct store_options *options, struct error *err);
/* Exchanges that wait must have been woken (step_watch_wake_all) and must have ended. NULL is
 * fine. */
void store_close(struct store *store);

#endif
