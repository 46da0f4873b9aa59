/* The whole store of one data folder: opens what every room works with, brings catalog and packs
 * together, and starts what works behind the requests. Only the holder of DIR/lock
 * (server/data_folder) may open one. */
#ifndef STORAGE_OPEN_STORE_OPEN_H
#define STORAGE_OPEN_STORE_OPEN_H

#include "storage/core/store.h"
#include "storage/runs/webhook.h"
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
	/* bytes of the disk that content leaves free (disk_floor.h); 0: none */
	uint64_t disk_reserve;
	uint64_t pack_max_bytes; /* 0: 64 MiB */
	/* policy of buckets that have none of their own (bucket.h) */
	bool fast_etags;
	bool memory_packs; /* tests: packs in memory */
	enum after_damage after_damage;
	/* what counts as a day in lifecycle rules; 0: 24 hours */
	int64_t lifecycle_day_ms;
	/* between two walks of the lifecycle worker; 0: an hour */
	int64_t lifecycle_interval_ms;
	struct gc_options gc; /* zeros: gc works only when asked to */
	struct derive_options derive;
	struct step_worker_options steps;
	struct webhook_options webhooks;
	struct xet_options xet;
};
/* A catalog that is not the one of these packs, or has lost what was acknowledged, is refused
 * (damaged) before anything moves, unless after_damage says otherwise. On a file system that takes
 * no writes the store is only read. */
struct store *store_open(const struct store_options *options, struct error *err);
/* Waiting exchanges must have been woken (step_watch_wake_all) and finished first. NULL is fine. */
void store_close(struct store *store);

#endif
