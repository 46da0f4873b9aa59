/* A store is made and ended in pieces, which storage/open puts together: the pieces that know
 * nothing of the rooms above. One thread. Internal to storage. */
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
	unsigned helper_threads;
	uint64_t disk_reserve;
	uint64_t pack_max_bytes; /* 0: 64 MiB */
	bool fast_etags;
	bool memory_packs; /* tests: packs in memory */
};
/* With helpers, watch and change feed; without packs and catalog. */
struct store *store_new(const struct store_params *params);
/* The packs and their index; what lies there is not looked at. */
int store_open_packs(struct store *store, const struct store_params *params, struct error *err);
/* What the chunk index has lost is read from the packs again. */
void store_fill_chunk_index(struct store *store);

struct store_catalog { /* all of it is the store's from here on */
	char *path;
	struct acknowledged *acknowledged; /* may be NULL */
	struct store_identity identity;
};
void store_set_catalog(struct store *store, const struct store_catalog *catalog);
/* From here on changes are taken. `db`, of that catalog and for writing, is taken over. */
void store_start_committer(struct store *store, struct db *db);
/* Runs what is queued; then the catalog is closed, and no helper has work left. */
void store_end_changes(struct store *store);
void store_end_helpers(struct store *store);
void store_free(struct store *store);

#endif
