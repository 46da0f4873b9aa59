/* Finds for damaged chunks the files of published steps that have them: objects of anchors, whose
 * bytes a worker that holds the step has as a file. Reads the catalog; scrub's thread only.
 * Internal to storage. */
#ifndef STORAGE_SCRUB_WANT_SEARCH_H
#define STORAGE_SCRUB_WANT_SEARCH_H

#include "storage/core/store.h"
#include "storage/scrub/chunk_wants.h"

/* Makes the list of `wants` anew from all damage that is known now. Empty when nothing is damaged.
 * After a failure it has what was found before. */
int want_search_run(struct store *store, struct chunk_wants *wants, struct error *err);

#endif
