/* Finishes in slices what changes only marked: objects of removed steps and ended runs, rows of
 * large dead part sets, what uploads leave, files registered by their hash whose time is over, free
 * pages. A thread that looks once a second and works as long as it finds something. Internal to
 * storage. */
#ifndef STORAGE_UPKEEP_SWEEPER_H
#define STORAGE_UPKEEP_SWEEPER_H

#include "storage/core/committer.h"
#include "storage/core/store.h"
#include "storage/files/xet_file.h"

struct sweeper;

struct sweeper *sweeper_start(struct store *store);
void sweeper_stop(struct sweeper *sweeper); /* NULL is fine; before the committer stops */
/* A run of slices. A kind of work that failed is passed over in what is left of the run, so that it
 * holds up no other. Begin with zeros. */
struct sweep {
	unsigned failed;       /* a bit for each kind that did */
	uint64_t rows_damaged; /* of the catalog, that were set aside (xet_file.h) */
};
/* One slice, now, through the committer; nothing while the catalog is not proven. *out_more: there
 * is more to do, of other kinds after a failure. */
int sweeper_slice(struct store *store, struct sweep *sweep, bool *out_more, struct error *err);

#endif
