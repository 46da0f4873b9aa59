/* Xorbs as they are shown to Xet clients: chunk records one behind the other, without a footer. A
 * record with one of our own codecs is shown as a plain one (header and content), all others as
 * they lie; `as_stored` shows everything as it lies. Chunks that compaction took away count
 * nothing, so offsets in a shown xorb hold until its pack is compacted. docs/FORMAT.md, "Fetch
 * tokens". Any thread; a view is one thread's. */
#ifndef STORAGE_PACKS_XORB_VIEW_H
#define STORAGE_PACKS_XORB_VIEW_H

#include "storage/packs/pack_index.h"
#include "storage/packs/pack_store.h"

/* What is in one pack, which cannot be compacted under it; the chunks' bytes are the caller's to
 * hold. */
struct xorb_view;
/* corrupt when there is no such pack. */
struct xorb_view *xorb_view_open(
	struct pack_store *packs, const struct pack_id *pack, struct error *err);
void xorb_view_close(struct xorb_view *view); /* NULL is fine */
const struct pack_id *xorb_view_pack(const struct xorb_view *view);
/* The xorb of chunk number `chunk` of the pack; corrupt when there is none. */
int xorb_view_find(
	struct xorb_view *view, uint32_t chunk, struct pack_xorb *out, struct error *err);
/* The sizes (uncompressed) of chunks [from, end) of the pack, at most XORB_MAX_CHUNKS; corrupt when
 * one is missing. */
int xorb_view_sizes(struct xorb_view *view, uint32_t from, uint32_t end, uint32_t *out_sizes,
	struct error *err);
/* How many bytes those of chunks [from, end) that exist take when shown; *out_present (may be NULL)
 * says how many they are. */
uint64_t xorb_view_shown(
	struct xorb_view *view, uint32_t from, uint32_t end, bool as_stored, uint32_t *out_present);

#endif
