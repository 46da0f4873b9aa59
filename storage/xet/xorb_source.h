/* Streams runs of chunk records out of packs, in the form that Xet clients see (xorb_view.h). Each
 * record is verified (invariant 7). The source holds the packs that it reads. */
#ifndef STORAGE_XET_XORB_SOURCE_H
#define STORAGE_XET_XORB_SOURCE_H

#include "base/stream.h"
#include "storage/packs/pack_store.h"

struct xorb_run {
	struct pack_id pack;
	uint32_t first; /* chunk number in the pack */
	uint32_t count;
	uint64_t length; /* bytes, as shown */
};
/* Bytes [offset, offset + length) of the runs one after the other. They must lie in the runs. */
struct xorb_source_params {
	const struct xorb_run *runs; /* copied */
	size_t count;                /* at least 1 */
	bool as_stored;
	uint64_t offset;
	uint64_t length;
	bool is_soon; /* the caller must not be blocked: not_ready when an index is far */
};
/* not_found when a pack or chunk was deleted or a run has another length now. Close frees the
 * source. One thread at a time. In a far place (backend.h) it has let_wait. */
struct body_source *xorb_source_open(
	struct pack_store *packs, const struct xorb_source_params *params, struct error *err);

/* The same for a xorb of one plain record with this content (copied), at most INLINE_MAX_BYTES. */
struct body_source *xorb_source_open_inline(struct span content, uint64_t offset, uint64_t length);

#endif
