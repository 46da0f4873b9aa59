/* Compares the files of packs with the rows of the catalog at a start. The first look moves
 * nothing. Later, once the catalog is known to be the right one, files that are proven garbage are
 * removed, other files without a row are set aside, and files that a row names are brought back
 * from there. A far place (backend.h) is not listed, because that takes long and proves nothing:
 * its sealed packs count as there, and nothing of it counts as unnamed. One thread. Internal to
 * storage. */
#ifndef STORAGE_PACKS_PACK_RECOVERY_H
#define STORAGE_PACKS_PACK_RECOVERY_H

#include "storage/packs/pack_store.h"
#include "storage/packs/store_health.h"

struct pack_recovery;

/* The result of the look. */
struct pack_facts {
	size_t named;   /* rows of the catalog */
	size_t missing; /* rows without a file, also not one that was set aside, or staged rows */
	size_t unnamed; /* pack files that no row names */
	size_t foreign; /* unnamed files that another store made */
	/* the newest life among unnamed files of this store; 0: there are none */
	uint32_t newest_life;
	char foreign_name[48]; /* the name of one file of each kind, for messages */
	char newest_name[48];
};

struct pack_names { /* the rows of the catalog; borrowed until the recovery is freed */
	const struct pack_record *records;
	size_t record_count;
	const struct pack_id *removals; /* names of files that may be removed */
	size_t removal_count;
};
/* `origin` is the store and the life that ended. A store without an id has zeros, which match
 * nothing. */
struct pack_recovery *pack_recovery_look(struct pack_store *store, const struct pack_names *names,
	const struct pack_origin *origin, struct error *err);
const struct pack_facts *pack_recovery_facts(const struct pack_recovery *recovery);
/* Tells how many files are missing, and names the first eight; nothing when all are there. */
void pack_recovery_tell_missing(const struct pack_recovery *recovery, struct store_health *health);
/* `is_whole`: the catalog has everything that was acknowledged in the life that ended, so that
 * files of that life without a row are garbage. Packs that were open are sealed; *out_sealed
 * (free() it) has those whose state in the catalog must become PACK_SEALED. A named pack that is
 * absent or shorter than its committed length is logged, and the start goes on: its objects answer
 * errors. In a far place packs that were open are left out: the caller restores them
 * (pack_store_shared_restore). */
int pack_recovery_settle(struct pack_recovery *recovery, bool is_whole,
	struct pack_record **out_sealed, size_t *out_sealed_count, struct error *err);
/* The same without changing anything, now or later: for a store that is only read. */
void pack_recovery_accept(const struct pack_recovery *recovery);
void pack_recovery_free(struct pack_recovery *recovery); /* NULL is fine */

#endif
