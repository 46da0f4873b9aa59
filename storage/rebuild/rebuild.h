/* Makes the catalog of a data folder again from its journal and its packs, when it is lost. The
 * caller holds DIR/lock. One thread. */
#ifndef STORAGE_REBUILD_REBUILD_H
#define STORAGE_REBUILD_REBUILD_H

#include "base/file.h"
#include "storage/journal/journal_history.h"
#include "storage/rebuild/pack_adoption.h"

struct rebuild_params {
	const char *folder;
	const struct file_ops *files;
	int64_t promise_ms; /* how long xorbs stay that the journal does not know */
	bool replaces;      /* a catalog that is there is set aside; otherwise that is refused */
	bool is_dry_run;    /* makes the catalog, reports, and removes it */
	/* corrupt when the journal does not lead to this change; 0: as far as it leads */
	int64_t expects_change;
	uint64_t lives; /* how many starts are left out, for those that may have been lost */
};
struct rebuild_report {
	/* the way that was taken; its snapshot is NULL until a catalog was made */
	struct journal_way way;
	char snapshot_name[JOURNAL_NAME_BYTES];
	int64_t acknowledged;     /* the last change that a client was told of; 0: unknown */
	bool is_exact;            /* that is so; otherwise there may have been later ones */
	size_t damaged_snapshots; /* those that were tried before */
	int64_t buckets;
	int64_t objects; /* current versions */
	int64_t steps;
	struct pack_adoption packs;
	/* without a snapshot: the files whose content has no names */
	size_t nameless_packs;
	uint64_t nameless_bytes;
};
/* Fails with exists when there is a catalog and `replaces` is not set, with not_found when the
 * journal has no snapshot. Until the last rename the folder has no other catalog than before; an
 * interrupted run is repeated from its beginning. */
int rebuild_run(const struct rebuild_params *params, struct rebuild_report *out, struct error *err);

#endif
