/* Start: what lies among the packs is held against what the catalog names. First a look, which
 * moves nothing; then, once the catalog is known to be the right one, files that are proven to be
 * refuse are removed, what no row names otherwise is set aside, and what is named and was set aside
 * is brought back. One thread. Internal to storage. */
#ifndef STORAGE_PACKS_PACK_RECOVERY_H
#define STORAGE_PACKS_PACK_RECOVERY_H

#include "storage/packs/pack_store.h"

struct pack_recovery;

/* What the look found. */
struct pack_facts {
	size_t named;          /* rows */
	size_t missing;        /* of these, without a file, and none was set aside */
	size_t unnamed;        /* pack files that no row names */
	size_t foreign;        /* of these, made by another store */
	uint32_t newest_life;  /* of those that this store made; 0: none */
	char missing_name[48]; /* one of each, for messages */
	char foreign_name[48];
	char newest_name[48];
};

struct pack_names { /* what the catalog says; borrowed until the recovery is freed */
	const struct pack_record *records;
	size_t record_count;
	const struct pack_id *removals; /* names of files that may be removed */
	size_t removal_count;
};
/* `origin`: the store, and the life that ended; of a store without an id zeros, which nothing is
 * like. */
struct pack_recovery *pack_recovery_look(struct pack_store *store, const struct pack_names *names,
	const struct pack_origin *origin, struct error *err);
const struct pack_facts *pack_recovery_facts(const struct pack_recovery *recovery);
/* `is_whole`: all that was acknowledged in the life that ended is in the catalog, so that what it
 * made and no row names is refuse. Packs that were open are sealed: *out_sealed (free() it) tells
 * those whose state in the catalog must become PACK_SEALED. A named pack that is absent or shorter
 * than committed is logged and start goes on: its objects answer errors. */
int pack_recovery_settle(struct pack_recovery *recovery, bool is_whole,
	struct pack_record **out_sealed, size_t *out_sealed_count, struct error *err);
/* The same without touching anything, now and later: for a store that is only read. */
void pack_recovery_accept(const struct pack_recovery *recovery);
void pack_recovery_free(struct pack_recovery *recovery); /* NULL is fine */

#endif
