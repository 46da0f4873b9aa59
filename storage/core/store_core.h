/* Makes and ends a store in steps: the pieces that do not depend on the rooms above. storage/open
 * calls the functions in the order in which they stand here. One thread. Internal to storage. */
#ifndef STORAGE_CORE_STORE_CORE_H
#define STORAGE_CORE_STORE_CORE_H

#include "storage/core/acknowledged.h"
#include "storage/core/store.h"

struct store_params {
	const char *folder;
	const struct file_ops *files;
	const struct clock_source *clock;
	struct metrics *metrics; /* borrowed, may be NULL */
	struct log *log;         /* borrowed, may be NULL */
	unsigned helper_threads; /* above 0 */
	uint64_t disk_reserve;   /* bytes that content leaves free (disk_floor.h); 0: none */
	uint64_t pack_max_bytes; /* 0: 64 MiB */
	bool fast_etags;
	bool memory_packs; /* tests: packs in memory */
	/* Opens the place of packs, called once; NULL: the folder DIR/packs. */
	struct backend *(*open_backend)(void *owner, struct error *err);
	void *backend_owner;
};
/* Makes the store with helpers, watch and change feed, without packs and catalog. */
struct store *store_new(const struct store_params *params);
/* Opens the packs and the chunk index, without looking at the packs that are there. */
int store_open_packs(struct store *store, const struct store_params *params, struct error *err);
/* Fills a new chunk index from the packs. After a failure the next start makes it again. */
void store_fill_chunk_index(struct store *store);

struct store_catalog { /* owned by the store after store_set_catalog */
	char *path;
	struct acknowledged *acknowledged; /* may be NULL */
	struct journal *journal;           /* NULL: nothing changes the catalog */
	struct store_identity identity;
};
void store_set_catalog(struct store *store, const struct store_catalog *catalog);
/* From here on the store takes changes. `db` is a connection of that catalog for writing; it is
 * taken over. */
void store_start_committer(struct store *store, struct db *db);
/* Runs the queued changes, then closes the catalog. */
void store_end_changes(struct store *store);
/* Runs the jobs that the last changes gave to helpers, then stops the helpers and the watch. */
void store_end_helpers(struct store *store);
void store_free(struct store *store);

#endif
