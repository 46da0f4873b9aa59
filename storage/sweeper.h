/* Finishes in slices what changes only marked: objects of removed steps and ended runs, rows of large dead part sets, what uploads leave, files
 * registered by their hash whose time is over, free pages. A thread that looks once a second and works as long as it finds something. Internal
 * to storage. */
#ifndef STORAGE_SWEEPER_H
#define STORAGE_SWEEPER_H

#include "storage/committer.h"
#include "storage/store.h"

struct sweeper;

struct sweeper *sweeper_start(struct store *store);
void sweeper_stop(struct sweeper *sweeper); /* NULL is fine; before the committer stops */
/* One slice, now, through the committer. *out_more: there is more to do. */
int sweeper_slice(struct store *store, bool *out_more, struct error *err);

#endif
