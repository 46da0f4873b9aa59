#include "storage/packs/xorb_view.h"

#include <stdlib.h>

#include "base/memory.h"
#include "storage/packs/pack_record.h"
#include "storage/packs/pack_store_parts.h"

enum { VIEW_BATCH = 128 };

struct xorb_view {
	struct pack_cache *cache;
	struct pack *pinned;
	struct pack_id pack;
	struct pack_entry entries[VIEW_BATCH];
};

static struct xorb_view *view_new(struct pack_store *packs, struct pack *pinned);
static int view_corrupt(const struct xorb_view *view, uint32_t chunk, struct error *err);

struct xorb_view *xorb_view_open(
	struct pack_store *packs, const struct pack_id *pack, struct error *err)
{
	struct pack *const pinned = pack_cache_pin(packs->cache, pack, false, err);
	return pinned != NULL ? view_new(packs, pinned) : NULL;
}

struct xorb_view *xorb_view_open_near(
	struct pack_store *packs, const struct pack_id *pack, struct error *err)
{
	struct pack *const pinned = pack_cache_pin_near(packs->cache, pack, false);
	if (pinned != NULL)
		return view_new(packs, pinned);
	error_set(err, ERROR_NOT_READY, "The index of the pack is not in memory.");
	return NULL;
}

void xorb_view_close(struct xorb_view *view)
{
	if (view == NULL)
		return;
	pack_cache_unpin(view->cache, view->pinned);
	free(view);
}

const struct pack_id *xorb_view_pack(const struct xorb_view *view)
{
	return &view->pack;
}

int xorb_view_find(struct xorb_view *view, uint32_t chunk, struct pack_xorb *out, struct error *err)
{
	return pack_cache_find_xorb(view->cache, view->pinned, chunk, out)
		? 0
		: view_corrupt(view, chunk, err);
}

int xorb_view_sizes(
	struct xorb_view *view, uint32_t from, uint32_t end, uint32_t *out_sizes, struct error *err)
{
	ASSERT(from <= end);
	uint32_t at = from;
	while (at < end) {
		const uint32_t before = at;
		const size_t count = pack_cache_copy_present(
			view->cache, view->pinned, &at, end, view->entries, VIEW_BATCH);
		if (count == 0 || at - before != count)
			return view_corrupt(view, before, err);
		for (size_t i = 0; i < count; i++)
			out_sizes[before - from + i] = view->entries[i].size;
	}
	return 0;
}

uint64_t xorb_view_shown(
	struct xorb_view *view, uint32_t from, uint32_t end, bool as_stored, uint32_t *out_present)
{
	uint64_t bytes = 0;
	uint32_t at = from;
	uint32_t present = 0;
	size_t count;
	while ((count = pack_cache_copy_present(
			view->cache, view->pinned, &at, end, view->entries, VIEW_BATCH)) > 0) {
		for (size_t i = 0; i < count; i++)
			bytes += pack_record_shown(&view->entries[i], as_stored);
		present += (uint32_t)count;
	}
	if (out_present != NULL)
		*out_present = present;
	return bytes;
}

static struct xorb_view *view_new(struct pack_store *packs, struct pack *pinned)
{
	struct xorb_view *const view = memory_new(sizeof(*view));
	view->cache = packs->cache;
	view->pinned = pinned;
	view->pack = *pack_cache_id(pinned);
	return view;
}

static int view_corrupt(const struct xorb_view *view, uint32_t chunk, struct error *err)
{
	char text[PACK_ID_TEXT_BYTES];
	pack_id_format(&view->pack, text);
	return error_set(err, ERROR_CORRUPT, "The pack %s has no chunk %u.", text, chunk);
}
