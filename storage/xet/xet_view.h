/* The catalog as it is at one moment, for who looks files up by their Xet hash and says what they
 * are made of: no chunk that it shows goes while the view is there. Of one thread, and not for
 * long, as object_view.h says. */
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
/* As reconstruction_load, of what this view has found; reconstruction_place comes while the view is
 * there. */
int xet_view_load(struct xet_view *view, struct reconstruction *plan,
	const struct xet_content *content, uint64_t from, uint64_t to, uint64_t *out_skip,
	struct error *err);
/* Bytes [offset, offset + length) of the one record that an inline version of this bucket is shown
 * as (xorb_source.h); they lie in it unless not_found: it is gone, or of another length. The source
 * outlives the view. */
struct body_source *xet_view_open_inline(struct xet_view *view, int64_t bucket, int64_t version,
	uint64_t offset, uint64_t length, struct error *err);

#endif
