/* A snapshot of the catalog, for callers that find files by their Xet hash and plan their
 * reconstruction: no chunk that it shows is deleted while the view exists. One thread uses it, and
 * for a short time only (object_view.h). */
#ifndef STORAGE_XET_XET_VIEW_H
#define STORAGE_XET_XET_VIEW_H

#include "base/stream.h"
#include "storage/xet/reconstruction.h"

struct xet_view;
struct xet_view *xet_view_new(struct store *store, struct error *err);
void xet_view_free(struct xet_view *view); /* NULL is fine */

/* As xet_content_find. */
int xet_view_find(struct xet_view *view, const struct xet_reach *reach, const struct chunk_id *file,
	struct xet_content *out, struct error *err);
/* As reconstruction_load, for content that this view has found. reconstruction_place must be called
 * while the view exists. */
int xet_view_load(struct xet_view *view, struct reconstruction *plan,
	const struct xet_content *content, struct reconstruction_bytes *bytes, struct error *err);
/* Opens bytes [offset, offset + length) of the one record that an inline version of this bucket is
 * shown as (xorb_source.h). not_found: the version is gone, or the record is shorter than that. The
 * source outlives the view. */
struct body_source *xet_view_open_inline(struct xet_view *view, int64_t bucket, int64_t version,
	uint64_t offset, uint64_t length, struct error *err);

#endif
