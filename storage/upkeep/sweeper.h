/* The thread that finishes in slices what changes only marked: objects of removed steps and ended
 * runs, rows of large dead part sets, leftovers of uploads, registered files whose day is over,
 * free pages. It looks once a second, and works as long as it finds something. Internal to
 * storage. */
#ifndef STORAGE_UPKEEP_SWEEPER_H
#define STORAGE_UPKEEP_SWEEPER_H

#include "storage/core/committer.h"
#include "storage/core/store.h"
#include "storage/files/xet_file.h"

struct sweeper;

struct sweeper *sweeper_start(struct store *store);
void sweeper_stop(
	struct sweeper *sweeper); /* NULL is fine. Must come before the committer stops. */
/* A run of slices; begin with zeros. A kind of work that failed is passed over for the rest of the
 * run, so that it holds up no other. */
struct sweep {
	unsigned failed;       /* a bit for each kind that failed */
	uint64_t rows_damaged; /* rows of the catalog that were set aside (xet_file.h) */
};
/* Does one slice, now, through the committer; nothing while the catalog is not proven. *out_more:
 * there may be more to do, after a failure of other kinds. */
int sweeper_slice(struct store *store, struct sweep *sweep, bool *out_more, struct error *err);

#endif
