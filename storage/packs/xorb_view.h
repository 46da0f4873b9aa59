/* Xorbs as Xet clients see them: chunk records one after the other, without a footer. A record with
 * a codec of our own is shown as a plain one (header and content), every other as it is stored;
 * `as_stored` shows all records as they are stored. Chunks that compaction removed take no bytes,
 * so offsets in a shown xorb are valid until its pack is compacted. docs/FORMAT.md, "Fetch tokens".
 * Any thread; one thread at a time uses a view. */
#ifndef STORAGE_PACKS_XORB_VIEW_H
#define STORAGE_PACKS_XORB_VIEW_H

#include "storage/packs/pack_index.h"
#include "storage/packs/pack_store.h"

/* The content of one pack, which keeps its present form for the view. The caller must hold the
 * chunks' bytes. */
struct xorb_view;
/* corrupt when there is no such pack. */
struct xorb_view *xorb_view_open(
	struct pack_store *packs, const struct pack_id *pack, struct error *err);
/* The same for a thread that must not wait: not_ready unless the pack's index is in memory. */
struct xorb_view *xorb_view_open_near(
	struct pack_store *packs, const struct pack_id *pack, struct error *err);
void xorb_view_close(struct xorb_view *view); /* NULL is fine */
const struct pack_id *xorb_view_pack(const struct xorb_view *view);
/* Finds the xorb of chunk number `chunk` of the pack; corrupt when there is none. */
int xorb_view_find(
	struct xorb_view *view, uint32_t chunk, struct pack_xorb *out, struct error *err);
/* Gives the uncompressed sizes of chunks [from, end) of the pack, at most XORB_MAX_CHUNKS; corrupt
 * when one is missing. */
int xorb_view_sizes(struct xorb_view *view, uint32_t from, uint32_t end, uint32_t *out_sizes,
	struct error *err);
/* The bytes that the present chunks of [from, end) take when shown. *out_present (may be NULL) is
 * their number. */
uint64_t xorb_view_shown(
	struct xorb_view *view, uint32_t from, uint32_t end, bool as_stored, uint32_t *out_present);

#endif
