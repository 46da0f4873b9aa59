/* How a store comes to its catalog at a start: nothing is touched before it is known to be the one
 * that belongs to the packs beside it, with all that was acknowledged. Internal to storage; one
 * thread. */
#ifndef STORAGE_START_STORE_START_H
#define STORAGE_START_STORE_START_H

#include "storage/core/acknowledged.h"
#include "storage/core/store.h"
#include "storage/packs/disk_floor.h"
#include "storage/packs/pack_store.h"
#include "storage/packs/store_health.h"
#include "storage/start/catalog_copy.h"

/* What a start does that finds acknowledged changes lost, or the wrong catalog. */
enum after_damage {
	AFTER_DAMAGE_REFUSE,    /* it says what is wrong, and changes nothing */
	AFTER_DAMAGE_READ_ONLY, /* what is there is served, from a copy of the catalog */
	AFTER_DAMAGE_SERVE      /* it goes on with what is there, from now on the truth */
};

struct store_start_params {
	const char *folder;
	const struct file_ops *files;
	struct pack_store *packs;
	const struct disk_floor *floor;
	struct log *log;             /* may be NULL */
	struct store_health *health; /* is told when the store is only read */
	enum after_damage after_damage;
	bool memory_packs; /* nothing outlives the process, and nothing is asked */
};
struct store_start {
	struct db *db;      /* the catalog, for writing; the caller's from here on */
	char *catalog_path; /* of that file; the caller's */
	/* that it is, to be freed at the end; NULL: it is none. The caller's */
	struct catalog_copy *copy;
	struct acknowledged *acknowledged; /* the caller's; NULL for a copy */
	struct store_identity store;       /* with the number of this life */
};
/* A failure leaves nothing to release, and files as they were. */
int store_start(
	const struct store_start_params *params, struct store_start *out, struct error *err);

#endif
