/* Divides a range of stored bytes into whole chunks, which are taken by reference, and the parts of
 * chunks at both ends, which must be stored again. Internal to storage. */
#ifndef STORAGE_UPLOADS_UPLOAD_CUT_H
#define STORAGE_UPLOADS_UPLOAD_CUT_H

#include "storage/packs/pack_store.h"
#include "storage/versions/part.h"

struct upload_cut {
	/* Bytes before the first whole chunk; all bytes when there is no whole one. */
	uint64_t head;
	const struct segment *segments; /* the whole chunks; they lie in the range's array */
	size_t segment_count;
	uint64_t tail; /* bytes behind the last whole chunk */
};
/* `range` is as part_set_load filled it; its segments are trimmed in place. The caller refers to
 * their packs. corrupt when a pack's index does not match the segments. */
int upload_cut_range(struct pack_store *packs, struct part_range *range, struct upload_cut *out,
	struct error *err);

#endif
