/* Runs of chunk records in the form that is shown to Xet clients (xorb_view.h), streamed out of
 * packs, each record verified (invariant 7). Holds the packs it reads. */
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
/* `runs` (copied) one behind the other are a stream: reads [offset, offset + length) of it, which
 * lie in it. not_found when a pack or chunk is not there any more or a run is not of that length
 * now. Close frees it. One thread at a time. */
struct body_source *xorb_source_open(struct pack_store *packs, const struct xorb_run *runs,
	size_t count, bool as_stored, uint64_t offset, uint64_t length, struct error *err);

/* The same of a xorb that is one plain record with this content, at most INLINE_MAX_BYTES. */
struct body_source *xorb_source_open_inline(struct span content, uint64_t offset, uint64_t length);

#endif
