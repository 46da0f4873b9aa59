/* Files that Hub clients have registered and that no version is made of, or no version any more
 * (xet_file.h). They keep their chunks for a day, unless a request to gc ends that. An ended file
 * is as if it had never been sent: a batch that names it is refused. gc's thread, which waits for
 * the committer. Internal to storage. */
#ifndef STORAGE_UPKEEP_GC_REGISTERED_H
#define STORAGE_UPKEEP_GC_REGISTERED_H

#include "storage/core/store.h"
#include "storage/files/xet_file.h"

/* Ends some of those whose hashes come behind *inout_after, which begins with zeros and moves on.
 * *out_more: there may be others. Part sets of many rows are left to the sweeper. */
int gc_registered_end(struct store *store, struct chunk_id *inout_after, bool *out_more,
	struct xet_file_damage *damage, struct error *err);
/* The bytes of all of them. */
int gc_registered_bytes(struct store *store, uint64_t *out_bytes, struct error *err);

#endif
