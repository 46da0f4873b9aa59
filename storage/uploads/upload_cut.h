/* A range of stored bytes as whole chunks and what is cut off at both ends: the whole ones are
 * taken by reference, the cut ones are stored anew. Internal to storage. */
#ifndef STORAGE_UPLOADS_UPLOAD_CUT_H
#define STORAGE_UPLOADS_UPLOAD_CUT_H

#include "storage/packs/pack_store.h"
#include "storage/versions/part.h"

struct upload_cut {
	/* bytes in front of the first whole chunk; all of them when there is no whole one */
	uint64_t head;
	const struct segment *segments; /* whole chunks; they lie in the range's array */
	size_t segment_count;
	uint64_t tail; /* bytes behind the last whole chunk */
};
/* `range` as part_set_load filled it; its segments are trimmed in place. Their packs must be held.
 * corrupt when an index does not fit. */
int upload_cut_range(struct pack_store *packs, struct part_range *range, struct upload_cut *out,
	struct error *err);

#endif
