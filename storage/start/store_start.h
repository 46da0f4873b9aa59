/* The start of a store: finds out whether the catalog belongs to the packs beside it and has all
 * acknowledged changes. Nothing is changed before that is known. Internal to storage; one
 * thread. */
#ifndef STORAGE_START_STORE_START_H
#define STORAGE_START_STORE_START_H

#include "storage/core/acknowledged.h"
#include "storage/core/store.h"
#include "storage/journal/journal.h"
#include "storage/packs/disk_floor.h"
#include "storage/packs/pack_store.h"
#include "storage/packs/store_health.h"
#include "storage/start/catalog_copy.h"

/* The policy for a start that finds acknowledged changes lost, or the wrong catalog. */
enum after_damage {
	AFTER_DAMAGE_REFUSE,    /* fail with the reason, and change nothing */
	AFTER_DAMAGE_READ_ONLY, /* serve what is there, from a copy of the catalog */
	AFTER_DAMAGE_SERVE      /* go on with what is there, for good */
};

struct store_start_params {
	const char *folder;
	const struct file_ops *files;
	struct pack_store *packs;
	const struct disk_floor *floor;
	struct log *log;             /* may be NULL */
	struct store_health *health; /* is set read-only when the store is only read */
	enum after_damage after_damage;
	bool keeps_strays; /* pack files that no row names are set aside, and none is removed */
	bool memory_packs; /* tests: a new catalog is accepted without a question */
};
struct store_start {   /* the caller owns all of it */
	struct db *db; /* the catalog, for writing */
	char *catalog_path;
	struct catalog_copy *copy;         /* the catalog is this copy; NULL: it is the original */
	struct acknowledged *acknowledged; /* NULL on a disk that takes no writes */
	struct journal *journal;           /* records what `db` changes; NULL: nothing does */
	struct store_identity store;       /* with the number of this life */
};
/* After a failure there is nothing to release, and the files are as they were. */
int store_start(
	const struct store_start_params *params, struct store_start *out, struct error *err);

#endif
